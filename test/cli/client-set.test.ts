/** `lychgate client set`: what can be set can be removed, and what the audit log says of a change. */
import { Command, type Option } from 'commander'
import t, { type Test } from 'tap'
import { addAnywhereFlags } from '../../src/cli/files/open-target.ts'
import { commandLine } from '../../src/main.ts'
import { openStore } from '../../src/storage/open.ts'
import { newFolder } from '../helpers/command.ts'
import { runHere as run } from '../helpers/commands.ts'

const callback = 'https://app.example.com/callback'
const data = newFolder(t)

async function ok(...args: string[]) {
  const { code, stdout, stderr } = await run([...args, '--data', data])
  if (code !== 0) throw new Error(`${args.join(' ')}: ${stderr}`)
  return stdout
}
const add = async (...flags: string[]) =>
  JSON.parse(await ok('client', 'add', '--name', 'App', '--redirect-uri', callback, '--json', ...flags))
const set = async (id: string, ...flags: string[]) =>
  JSON.parse(await ok('client', 'set', id, '--json', ...flags))

async function lastChanges(t: Test, clientId: string) {
  const store = await openStore(`sqlite:${data}/lychgate.db`)
  t.teardown(() => store.close())
  const events = await store.audit({ since: 0, name: 'client-changed', clientId, limit: 20 })
  return events.map(({ facts }) => facts)
}

/** The options of `client set` that name a member. */
async function memberOptions(): Promise<readonly Option[]> {
  const client = (await commandLine('client')).commands[0]
  const command = client?.commands.find((one) => one.name() === 'set')
  const others = addAnywhereFlags(new Command(), '').options.map(({ long }) => long)
  return (command?.options ?? []).filter(({ long }) => !others.includes(long))
}

t.test('an empty text removes every member but those that a client must have', async (t) => {
  const { client_id: id, ...before } = await add()
  const options = await memberOptions()
  t.ok(options.filter(({ argChoices }) => argChoices !== undefined).length > 8, 'many have choices')
  const needed = { '--name': /name must have/, '--redirect-uri': /redirect-uri is missing/ }
  const wrong = { '--localized': /must be MEMBER#TAG=TEXT/ }
  for (const { long = '' } of options) {
    const { code, stderr } = await run(['client', 'set', id, '--data', data, long, ''])
    const reason = new Map<string, RegExp>(Object.entries({ ...needed, ...wrong })).get(long)
    t.match({ code, stderr }, reason === undefined ? { code: 0, stderr: '' } : { stderr: reason }, long)
  }
  const after = JSON.parse(await ok('client', 'show', id, '--json'))
  t.strictSame(
    { ...after, client_secret: before.client_secret },
    { ...before, client_id: id },
    'all defaults',
  )
})

t.test('a member with choices has the default of a new client when it was removed', async (t) => {
  const chosen = [
    '--legacy-audience',
    'true',
    '--pkce',
    'optional',
    '--consent',
    'skip',
    '--id-token-alg',
    'ES256',
  ]
  const { client_id: id } = await add(...chosen, '--auth', 'client_secret_post')
  const described = { legacy_audience: true, pkce: 'optional', consent: 'skip' }
  t.match(JSON.parse(await ok('client', 'show', id, '--json')), described)
  t.notMatch(await set(id, '--legacy-audience', ''), { legacy_audience: true })
  t.match(await set(id, '--pkce', ''), { pkce: 'required', consent: 'skip' })
  t.match(await set(id, '--consent', ''), { consent: 'remember', id_token_signed_response_alg: 'ES256' })
  t.match(await set(id, '--id-token-alg', ''), { id_token_signed_response_alg: 'RS256' })
  t.match(await set(id, '--auth', ''), {
    token_endpoint_auth_methods_accepted: ['client_secret_basic', 'client_secret_post'],
  })
  t.match(await set(id, '--grant-type', 'client_credentials', '--scope', 'courses:read'), {
    grant_types: ['client_credentials'],
  })
  t.match(await set(id, '--grant-type', ''), { grant_types: ['authorization_code', 'refresh_token'] })
  const { code, stderr } = await run(['client', 'add', '--data', data, '--name', 'App', '--pkce', ''])
  t.match(
    { code, stderr },
    { code: 64, stderr: /Allowed choices are required, optional/ },
    'only what is there',
  )
  const changed = (await lastChanges(t, id)).map((facts) => facts['changed'])
  t.strictSame(changed, [
    'legacy_audience',
    'pkce',
    'consent',
    'id_token_signed_response_alg',
    'token_endpoint_auth_method',
    'grant_types scope',
    'grant_types',
  ])
})

t.test('the audit log names the members that differ, by their names on the wire', async (t) => {
  const { client_id: id } = await add()
  await set(id, '--name', 'Course app', '--policy-uri', 'https://app.example.com/privacy')
  await set(id, '--name', 'Course app')
  await ok('group', 'create', 'staff')
  const group = JSON.parse(await ok('group', 'show', 'staff', '--json')).group_id
  await ok('client', 'access', id, '--allow', 'staff')
  await ok('client', 'access', id, '--everyone')
  t.strictSame(await lastChanges(t, id), [
    { changed: 'client_name policy_uri' },
    { changed: 'allowed_groups', allowed: group },
    { changed: 'allowed_groups', allowed: 'everyone' },
  ])
})
