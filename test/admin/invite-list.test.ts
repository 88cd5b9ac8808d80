/** Many users are invited at once: all of a list, or none of it. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readListedUsers } from '../../src/admin/operations/listed-users.ts'
import { createGroup } from '../../src/domain/group.ts'
import { systemRandom } from '../../src/system/system.ts'
import { addToGroup, changeGroups, groupsOf } from '../../src/users/groups.ts'
import { integrate, pageOf } from '../helpers/authorization.ts'
import { newFolder } from '../helpers/command.ts'
import { runHere } from '../helpers/commands.ts'
import { postAs } from '../helpers/flow.ts'
import { startMailbox } from '../helpers/mailbox.ts'
import { alice, startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { json } from '../helpers/wire.ts'

const mailbox = await startMailbox(t)
const level = { name: 'level', type: 'number', visible: 'administrator', editable: 'administrator' } as const
const server = await startServer(t, {
  admin: { secondFactor: 'off', api: 'on' },
  mail: { url: mailbox.url, from: 'id@example.test' },
  accounts: { attributes: [level] },
})
const { store, clock } = server.deps
const operator = () => ({ by: 'operator', at: clock() }) as const
const group = (name: string) =>
  changeGroups(store, (groups) => createGroup(groups, { name }, systemRandom(16), operator()))
const alices = (await store.find('userByLogin', 'alice'))?.id ?? ''
await addToGroup(store, await group('Admins'), alices, operator())
const pupils = await group('Pupils')
const machine = await integrate(server, {
  grantTypes: ['client_credentials'],
  redirectUris: [],
  scope: ['admin:users:read', 'admin:users:write'],
})
const grant = { grant_type: 'client_credentials' }
const { access_token: token } = await json(await postAs(server, machine, '/api/oauth/token', grant))
const agent = new UserAgent(server.issuer)
await agent.submit(pageOf(await agent.open(`${server.issuer}/admin`)), alice)
// About a new browser.
await mailbox.arrived(1)
const userOf = (login: string) => store.find('userByLogin', login)

function invite(body: object, headers: Readonly<Record<string, string>> = {}) {
  return fetch(`${server.issuer}/api/admin/v1/invitations`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
}

async function send(fields: Readonly<Record<string, string>>) {
  const url = `${server.issuer}/admin/users/invite-list`
  const { forms } = pageOf(await agent.open(url))
  const hidden = forms.flatMap(({ fields }) => fields).filter(({ name }) => name === 'csrf')
  const [csrf = ''] = hidden.map(({ value }) => value)
  const response = await agent.send(url, { method: 'POST', body: new URLSearchParams({ csrf, ...fields }) })
  return { status: response.status, html: await response.text() }
}

t.test('every user of a list of addresses gets a link by email', async (t) => {
  const { length } = mailbox.emails
  const response = await invite({ list: 'ada@example.test\r\n\r\n Bea@Example.test \n', group_id: pupils.id })
  t.equal(response.status, 200)
  const { invited, items } = await json(response)
  t.equal(invited, 2)
  t.match(items, [{ username: 'ada@example.test', invitation: { sent_to: 'ada@example.test' } }, {}])
  await mailbox.arrived(length + 2)
  t.strictSame(
    mailbox.emails
      .slice(length)
      .flatMap(({ to }) => to)
      .toSorted(),
    ['ada@example.test', 'bea@example.test'],
  )
  const ada = await userOf('ada@example.test')
  t.strictSame(
    (await groupsOf(store, ada?.id ?? '')).map(({ name }) => name),
    ['Pupils'],
  )
  const events = await store.audit({ since: 0, userId: ada?.id ?? '', limit: 10 })
  t.strictSame(events.map(({ name }) => name).toSorted(), ['group-member-added', 'link-made', 'user-invited'])
})

t.test('CSV of a spreadsheet has names, attributes and quoted cells', async (t) => {
  const list =
    '\ufeffGiven name;Email;level;nickname;username\n"Car;ol";carol@example.test;3;"C ""the"" C";carol\n;dora@example.test;;;\n'
  const { items } = await json(await invite({ list, send: false }))
  t.match(items, [
    { username: 'carol', invitation: { link: /\/link\?code=lyc_link_/ } },
    { username: 'dora@example.test' },
  ])
  t.match(await userOf('carol'), {
    email: 'carol@example.test',
    claims: { given_name: 'Car;ol', name: 'Car;ol', nickname: 'C "the" C', email_verified: false },
    attributes: { level: 3 },
  })
})

t.test('each wrong line is named, and then no user is added and no email sent', async (t) => {
  const [before, { length }] = [await store.contents(), mailbox.emails]
  const list = [
    'email,username,level',
    'new@example.test,new,1',
    'no address,other,1',
    'alice@example.test,third,1',
    'fourth@example.test,fourth,high',
    'NEW@example.test,fifth,1',
    'sixth@example.test,new,1',
    'seventh@example.test,ALICE,1',
  ].join('\n')
  const response = await invite({ list, group_id: pupils.id })
  t.equal(response.status, 400)
  const { error, error_description: description } = await json(response)
  t.equal(error, 'invalid_request')
  for (const line of [
    'line 3: email',
    'line 4: the user name or email address is taken',
    'line 5: attributes: level',
    'line 6: repeats line 2',
    'line 7: repeats line 2',
    'line 8: the user name or email address is taken',
  ])
    t.match(description, line)
  t.notMatch(description, 'line 2:')
  const { rejections: _, ...after } = Object(await store.contents())
  t.match(after, Object.fromEntries(Object.entries(before).filter(([name]) => name in after)))
  t.equal(await userOf('new'), undefined)
  t.equal(mailbox.emails.length, length)
})

t.test('what is no list is rejected', async (t) => {
  const row = (count: number) => Array.from({ length: count }, (_, at) => `u${at}@example.test`).join('\n')
  for (const [list, why] of [
    ['\n \n', 'line 1: has no email address'],
    ['name,username\nA,b', 'line 1: names no column email'],
    ['email,colour', 'line 1: column 2 is none of email, username, name'],
    ['email,name,Email\n', 'line 1: columns 1 and 3 are the same'],
    ['email,name\n\na@example.test,A,B', 'line 3: has 3 cells instead of 2'],
    ['email,name\na@example.test,"A\nB', 'line 2: opens a quotation mark that is not closed'],
    ['email,name\n', 'a list has 1 to 100 users, and this one 0'],
    [row(101), 'a list has 1 to 100 users, and this one 101'],
    [Array.from({ length: 12 }, () => 'x').join('\n'), 'line 10: '],
    [Array.from({ length: 12 }, () => 'x').join('\n'), 'and 2 more lines'],
  ] as const) {
    const response = await invite({ list })
    t.equal(response.status, 400)
    t.match((await json(response))['error_description'], why)
  }
  t.equal((await invite({ list: 'z@example.test', group_id: 'group_unknown' })).status, 404)
  t.equal(await userOf('z@example.test'), undefined)
})

t.test('a line is counted where its first cell is, whatever its cells contain', (t) => {
  const { users, faults } = readListedUsers('email,name\na@b,"A\nB"\n\nc@d\ne@f,E', [])
  t.strictSame(
    users.map(({ line, email }) => [line, email]),
    [
      [2, 'a@b'],
      [6, 'e@f'],
    ],
  )
  t.match(faults, [{ line: 5 }])
  t.end()
})

t.test('a repeated request invites no user again, and its response has no link', async (t) => {
  const headers = { 'idempotency-key': 'class-7b' }
  const body = { list: 'once@example.test', send: false }
  t.match(await json(await invite(body, headers)), { invited: 1, items: [{ username: 'once@example.test' }] })
  t.strictSame(await json(await invite(body, headers)), { invited: 1, items: [] })
})

t.test(
  'an email that the mail server rejects is replaced by its link, and the others are sent',
  async (t) => {
    const rejecting = await startMailbox(t, { reject: true })
    const without = await startServer(t, {
      admin: { secondFactor: 'off' },
      mail: { url: rejecting.url, from: 'id@example.test' },
    })
    const own = without.deps
    const context = { by: 'operator', at: own.clock() } as const
    const admins = await changeGroups(own.store, (groups) =>
      createGroup(groups, { name: 'Admins' }, systemRandom(16), context),
    )
    await addToGroup(own.store, admins, (await own.store.find('userByLogin', 'alice'))?.id ?? '', context)
    const browser = new UserAgent(without.issuer)
    const url = `${without.issuer}/admin/users/invite-list`
    const page = pageOf(await browser.submit(pageOf(await browser.open(url)), alice))
    const csrf = page.forms.flatMap(({ fields }) => fields).find(({ name }) => name === 'csrf')?.value ?? ''
    const body = new URLSearchParams({ csrf, list: 'ada@example.test\nbea@example.test' })
    const html = await (await browser.send(url, { method: 'POST', body })).text()
    t.equal(html.match(/\/link\?code=lyc_link_/g)?.length, 2)
    t.match(html, 'The links are not shown again')
  },
)

t.test('the page shows the links once, and keeps a list with a wrong line', async (t) => {
  const list = 'email,given_name\npage@example.test,Page\nwrong,Wrong'
  const wrong = await send({ list, group: 'pupils' })
  t.equal(wrong.status, 400)
  t.match(wrong.html, 'line 3: email')
  t.match(wrong.html, 'wrong,Wrong</textarea>')
  t.match((await send({ list: 'x@example.test', group: 'unknown' })).html, 'There is no group with this name')
  const right = await send({ list: 'email,given_name\npage@example.test,Page', group: 'pupils', show: '1' })
  t.equal(right.status, 200)
  t.match(right.html, /lyc_link_/)
  const user = await userOf('page@example.test')
  t.strictSame(
    (await groupsOf(store, user?.id ?? '')).map(({ name }) => name),
    ['Pupils'],
  )
})

t.test('the command reads a file', async (t) => {
  const folder = newFolder(t)
  const file = join(folder, 'list.csv')
  writeFileSync(file, 'email,username\nada@example.test,ada\nbea@example.test,bea\n')
  const here = ['--data', folder]
  const invited = await runHere(['user', 'invite-list', file, '--json', ...here])
  t.match(JSON.parse(invited.stdout), [{ username: 'ada', invitation: { link: /lyc_link_/ } }, {}])
  const again = await runHere(['user', 'invite-list', file, ...here])
  t.equal(again.code, 1)
  t.match(again.stderr, 'line 2: the user name or email address is taken')
  t.match(await runHere(['user', 'invite-list', join(folder, 'none.csv'), ...here]), {
    code: 1,
    stderr: 'none.csv',
  })
})
