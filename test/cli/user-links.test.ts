import t from 'tap'
import { createI18n } from '../../src/pages/i18n/i18n.ts'
import { openStore } from '../../src/storage/open.ts'
import { verifyPassword } from '../../src/users/passwords.ts'
import { newFolder } from '../helpers/command.ts'
import { runAll, runHere } from '../helpers/commands.ts'
import { startMailbox } from '../helpers/mailbox.ts'

const data = newFolder(t)
const store = await openStore(`sqlite:${data}/lychgate.db`)
t.teardown(() => store.close())
const link = /^http:\/\/localhost:9400\/link\?code=lyc_link_[\w-]{43}$/

/** Options go before `--`, which an id needs that begins with a hyphen. */
function withData(line: readonly string[]): string[] {
  const end = line.indexOf('--')
  return line.toSpliced(end < 0 ? line.length : end, 0, '--data', data)
}

/** Runs command lines with these settings. */
async function operate(environment: Readonly<Record<string, string>>, ...lines: string[][]) {
  Object.assign(process.env, environment)
  try {
    return await runAll(lines.map(withData))
  } finally {
    for (const name of Object.keys(environment)) delete process.env[name]
  }
}

t.test('without a mail server links are printed, and an invited user has no password yet', async (t) => {
  const [invite, again, reset, list, show] = await operate(
    {},
    ['user', 'invite', 'Alice@Example.org', '--username', 'alice', '--name', 'Alice', '--json'],
    ['user', 'invite', 'alice@example.org'],
    ['user', 'reset-link', 'alice'],
    ['user', 'list'],
    ['user', 'show', 'alice'],
  )
  const invited = JSON.parse(invite?.stdout ?? '')
  t.match(invited, { sub: /^user_/, username: 'alice', link, expires_at: Number })
  t.match(again, {
    code: 0,
    stdout: /^username +alice\nlink +http\S+\nvalid until +[^\n]+ UTC\n\nThe link works once/,
  })
  t.notMatch(again?.stdout, invited.link, 'another link')
  t.match(reset, { code: 0, stdout: /link +http/ })
  t.match(list?.stdout, / alice@example\.org {2}\(no password\)\n$/)
  t.match(show?.stdout, /^password +none$/m)
  const user = await store.find('userByLogin', 'alice')
  t.match(user, { id: invited.sub, email: 'alice@example.org', claims: { name: 'Alice' } })
  t.notOk(user && 'passwordHash' in user)
  const events = await store.audit({ since: 0, userId: invited.sub, limit: 10 })
  t.strictSame(
    events.map(({ name, by }) => `${by} ${name}`),
    ['operator user-invited', 'operator link-made', 'operator link-made', 'operator link-made'],
  )
})

t.test('an invitation with an invalid or used name or address is rejected', async (t) => {
  const results = await operate(
    {},
    ['user', 'invite', 'nothing'],
    ['user', 'invite', 'bob@example.org', '--username', 'alice'],
    ['user', 'invite', 'alice@example.org', '--username', 'alicia'],
    ['user', 'reset-link', 'nobody'],
  )
  t.strictSame(
    results.map(({ code, stderr }) => [code, stderr]),
    [
      [1, 'lychgate: email must be an email address\n'],
      [1, 'lychgate: the user name or email address is taken\n'],
      [1, 'lychgate: the user name or email address is taken\n'],
      [1, 'lychgate: no user has this user name, email address or sub\n'],
    ],
  )
  t.equal((await store.list('user')).length, 1)
})

t.test(
  'with a mail server they are sent, in the language of the user, unless --print is given',
  async (t) => {
    const mailbox = await startMailbox(t)
    const mail = { LYCHGATE_MAIL_URL: mailbox.url, LYCHGATE_MAIL_FROM: 'Courses <accounts@example.org>' }
    const [sent, printed] = await operate(
      { ...mail, LYCHGATE_ISSUER: 'https://id.example/t' },
      ['user', 'invite', 'dora@example.org', '--name', 'Dora', '--locale', 'de-CH', '--json'],
      ['user', 'reset-link', 'dora@example.org', '--print', '--json'],
    )
    const said = JSON.parse(sent?.stdout ?? '')
    t.match(said, { username: 'dora@example.org', sent_to: 'dora@example.org', expires_at: Number })
    t.notOk('link' in said)
    t.match(JSON.parse(printed?.stdout ?? ''), { link: /^https:\/\/id\.example\/t\/link\?code=lyc_link_/ })
    t.equal(mailbox.emails.length, 1)
    const received = await mailbox.arrived(1)
    const german = createI18n({ service: 'Lychgate' }).in('de')
    t.match(received, { to: ['dora@example.org'], subject: german.t('mail.invitation.subject').text })
    t.match(received.subject, 'Einladung')
    t.ok(received.text.startsWith(german.t('mail.hello', { name: 'Dora' }).text))
    t.match(received.text, /7.Tage/)
    t.match(received.url, /^https:\/\/id\.example\/t\/link\?code=lyc_link_[\w-]{43}$/)
  },
)

t.test('an email that the mail server rejects is one line, and its link is printed', async (t) => {
  const deaf = await startMailbox(t, { reject: true })
  const from = { LYCHGATE_MAIL_FROM: 'accounts@example.org' }
  const [rejected] = await operate({ LYCHGATE_MAIL_URL: deaf.url, ...from }, ['user', 'reset-link', 'alice'])
  const host = new URL(deaf.url).host
  t.equal(rejected?.code, 1)
  t.match(rejected?.stdout, /link +http\S+lyc_link_/)
  t.match(
    rejected?.stderr,
    new RegExp(
      `^lychgate: mail: ${host} did not accept the email \\(E\\w+: [^\\n]*\\); the link was created, [^\\n]*\\n$`,
    ),
  )
  const gone = 'smtp://user:hidden@127.0.0.1:1'
  const [away] = await operate({ LYCHGATE_MAIL_URL: gone, ...from }, [
    'user',
    'reset-link',
    'alice',
    '--json',
  ])
  t.match(away, { code: 1, stderr: /^lychgate: mail: 127\.0\.0\.1:1 did not accept the email \(E/ })
  t.match(JSON.parse(away?.stdout ?? ''), { link })
  t.notMatch(away?.stderr, 'hidden')
})

t.test('a new password revokes grants if the operator asks for it', async (t) => {
  const { id: userId } = (await store.find('userByLogin', 'alice')) ?? { id: '' }
  const line = ['user', 'passwd', 'alice', '--data', data]
  t.match(await runHere([...line, '--disconnect'], { input: 'long enough\n' }), { code: 0 })
  const user = await store.find('user', userId)
  t.ok(await verifyPassword('long enough', user?.passwordHash ?? ''))
  const events = await store.audit({ since: 0, userId, name: 'user-password-changed', limit: 9 })
  t.match(events, [{ by: 'operator', facts: { disconnected: 'everything' } }])
  const [invited] = await operate({}, ['user', 'invite', 'alice@example.org'])
  t.match(invited, { code: 1, stderr: /^lychgate: this user has a password; lychgate user reset-link/ })
})

t.test('the links of a user are listed and deleted, and their secrets are not shown', async (t) => {
  const [made, list] = await operate(
    {},
    ['user', 'invite', 'ella@example.org', '--json'],
    ['user', 'links', 'ella@example.org', '--json'],
  )
  const { link: url, sub } = JSON.parse(made?.stdout ?? '') as { link: string; sub: string }
  const [found] = JSON.parse(list?.stdout ?? '') as { link_id: string }[]
  t.match(found, { link_id: /./, purpose: 'invitation', expires_at: Number })
  const id = found?.link_id ?? ''
  t.notMatch(list?.stdout, new URL(url).searchParams.get('code'))
  const [line, unsure, other, deleted, again, none] = await operate(
    {},
    ['user', 'links', 'ella@example.org'],
    ['user', 'delete-link', 'ella@example.org', '--', id],
    ['user', 'delete-link', 'alice', '--yes', '--', id],
    ['user', 'delete-link', 'ella@example.org', '--yes', '--json', '--', id],
    ['user', 'delete-link', 'ella@example.org', '--yes', '--', id],
    ['user', 'links', 'ella@example.org', '--json'],
  )
  t.match(line, { code: 0, stdout: /^\S+ +invitation .*valid until [^\n]+ UTC\n$/ })
  t.match(unsure, { code: 1, stderr: /--yes/ })
  t.match(other, { code: 1, stderr: /alice has no link with this id/ }, 'that of another user')
  t.strictSame(JSON.parse(deleted?.stdout ?? ''), { link_id: id, deleted: true })
  t.match(again, { code: 1, stderr: /no link with this id/ })
  t.strictSame(JSON.parse(none?.stdout ?? ''), [])
  const [event] = await store.audit({ since: 0, userId: sub, name: 'link-deleted', limit: 9 })
  t.match(event, { by: 'operator', facts: { purpose: 'invitation' } })
})
