/** A test email: from each door the same email and the same event, and why it could not be sent. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createGroup } from '../../src/domain/group.ts'
import { systemRandom } from '../../src/system/system.ts'
import { addToGroup, changeGroups } from '../../src/users/groups.ts'
import { integrate, pageOf } from '../helpers/authorization.ts'
import { newFolder } from '../helpers/command.ts'
import { runHere } from '../helpers/commands.ts'
import { postAs } from '../helpers/flow.ts'
import { type Mailbox, startMailbox } from '../helpers/mailbox.ts'
import { alice, startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { json } from '../helpers/wire.ts'

/** A server with this mail server, and an administrator in a browser. */
async function withMailbox(mailbox: Mailbox) {
  const folder = newFolder(t)
  const mail = { url: mailbox.url, from: 'id@example.test', notices: 'off' } as const
  const server = await startServer(t, {
    store: `sqlite:${folder}/lychgate.db`,
    admin: { secondFactor: 'off', api: 'on' },
    mail,
  })
  const { store, clock } = server.deps
  const operator = { by: 'operator', at: clock() } as const
  const admins = await changeGroups(store, (groups) =>
    createGroup(groups, { name: 'Admins' }, systemRandom(16), operator),
  )
  const sub = (await store.find('userByLogin', 'alice'))?.id ?? ''
  await addToGroup(store, admins, sub, operator)
  // A client without a user must not act on an administrator.
  const bobs = (await store.find('userByLogin', 'bob'))?.id ?? ''
  const agent = new UserAgent(server.issuer)
  await agent.submit(pageOf(await agent.open(`${server.issuer}/admin`)), alice)
  const url = `${server.issuer}/admin/settings`
  const press = async () => {
    const { forms } = pageOf(await agent.open(url))
    const csrf = forms.flatMap(({ fields }) => fields).find(({ name }) => name === 'csrf')?.value ?? ''
    return agent.send(url, { method: 'POST', body: new URLSearchParams({ csrf }) })
  }
  const machine = await integrate(server, {
    grantTypes: ['client_credentials'],
    redirectUris: [],
    scope: ['admin:users:read', 'admin:users:write'],
  })
  const grant = { grant_type: 'client_credentials' }
  const { access_token: token } = await json(await postAs(server, machine, '/api/oauth/token', grant))
  const call = (id = bobs) =>
    fetch(`${server.issuer}/api/admin/v1/users/${id}/test-email`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
    })
  const [config, secret] = [join(folder, 'lychgate.yaml'), join(folder, 'secret')]
  writeFileSync(config, `data: ${folder}\nmail: ${JSON.stringify(mail)}\n`)
  writeFileSync(secret, `${machine.secret}\n`)
  const command = (...flags: string[]) => runHere(['user', 'test-email', 'bob', ...flags])
  const events = async () =>
    (await store.audit({ since: 0, name: 'email-tested', limit: 9 })).map(({ by, userId }) => [by, userId])
  return {
    ...{ server, sub, bobs, agent, url, press, call, events },
    onStore: () => command('--config', config),
    onServer: () =>
      command('--server', server.issuer, '--client-id', machine.id, '--secret-file', secret, '--json'),
  }
}

t.test('each door sends the same email, and writes the same event', async (t) => {
  const mailbox = await startMailbox(t)
  const { sub, bobs, press, call, events, onStore, onServer, agent, url } = await withMailbox(mailbox)
  const pressed = await press()
  t.match(pressed.headers.get('location'), '/admin/settings?done=email-sent')
  t.match(await (await agent.send(`${url}?done=email-sent`)).text(), 'The mail server accepted the email')
  t.strictSame(await json(await call()), { sent_to: 'bob@example.test' })
  t.match(await onStore(), { code: 0, stdout: 'sent to  bob@example.test' })
  t.strictSame(JSON.parse((await onServer()).stdout), { sent_to: 'bob@example.test' })
  const addresses = mailbox.emails.flatMap(({ to }) => to)
  t.strictSame(
    addresses,
    ['alice', 'bob', 'bob', 'bob'].map((name) => `${name}@example.test`),
  )
  for (const { subject, text } of mailbox.emails) {
    t.match(subject, /^A test email from /)
    t.match(text, 'You do not have to do anything.')
  }
  t.strictSame(
    await events(),
    [sub, bobs, bobs, bobs].map((id) => ['operator', id]),
  )
})

t.test('what the mail server says is shown, and is no event', async (t) => {
  const { press, call, events, onStore } = await withMailbox(await startMailbox(t, { reject: true }))
  const pressed = await press()
  t.equal(pressed.status, 409)
  t.match(await pressed.text(), /did not accept the email \(EENVELOPE/)
  const response = await call()
  t.equal(response.status, 409)
  const { error, error_description: description } = await json(response)
  t.equal(error, 'conflict')
  t.match(description, /^mail: 127\.0\.0\.1:\d+ did not accept the email/)
  t.match(description, /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/)
  t.match(await onStore(), { code: 1, stderr: 'did not accept the email' })
  t.strictSame(await events(), [])
})

t.test('a user without an address gets none, and a user who is not there is not found', async (t) => {
  const mailbox = await startMailbox(t)
  const { server, call } = await withMailbox(mailbox)
  const { store } = server.deps
  t.equal((await call('user_unknown')).status, 404)
  const { createUser } = await import('../../src/users/rules/user.ts')
  const user = createUser({ username: 'carol' }, systemRandom(16), server.now())
  await store.write({ op: 'insert', kind: 'user', record: user })
  const response = await call(user.id)
  t.equal(response.status, 409)
  t.match(await json(response), { error_description: 'the user has no email address' })
  t.equal(mailbox.emails.length, 0)
})
