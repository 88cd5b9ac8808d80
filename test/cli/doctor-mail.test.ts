import t from 'tap'
import { examineMail } from '../../src/cli/doctor/examine.ts'
import { loadConfig } from '../../src/settings/load.ts'
import { startMailbox } from '../helpers/mailbox.ts'

function findings(url?: string) {
  const environment = url === undefined ? {} : { LYCHGATE_MAIL_URL: url, LYCHGATE_MAIL_FROM: 'a@b.example' }
  return examineMail({ config: loadConfig({ mode: 'dev', environment }) })
}

t.test('a mail server that accepts the credentials passes, and no email is sent', async (t) => {
  const mailbox = await startMailbox(t)
  const { host } = new URL(mailbox.url)
  const said = `${host} accepts email from a@b.example`
  t.strictSame(await findings(mailbox.url), [{ check: 'mail', level: 'ok', said }])
  t.equal(mailbox.emails.length, 0)
})

t.test(
  'a mail server that rejects the credentials is a problem, and its password is not printed',
  async (t) => {
    const [finding, ...others] = await findings('smtp://user:hidden@127.0.0.1:1')
    t.strictSame(others, [])
    t.match(finding, { check: 'mail', level: 'problem', found: /^127\.0\.0\.1:1 does not let us in \(E/ })
    t.match(finding?.change, ['LYCHGATE_MAIL_URL=smtps://USER:PASSWORD@HOST:465'])
    t.notMatch(JSON.stringify(finding), 'hidden')
  },
)

t.test('without a mail server there is no finding', async (t) => {
  t.strictSame(await findings(), [])
})
