import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { insert } from '../../src/domain/decision.ts'
import { openStore } from '../../src/storage/open.ts'
import { makeClientKey } from '../helpers/assertions.ts'
import { newFolder } from '../helpers/command.ts'
import { runHere as run } from '../helpers/commands.ts'
import { faultsOf } from '../helpers/doctor.ts'
import { folderWithKeys, keysSecret } from '../helpers/keys.ts'
import * as sample from '../storage/samples.ts'

const data = await folderWithKeys(t)
const files = newFolder(t)
const client = (...args: string[]) => run(['client', ...args, '--data', data])
const keyed = ['--auth', 'private_key_jwt', '--jwks']

function keyFile(name: 'ES256' | 'RS256', members: object = {}): string {
  const file = join(files, `${name}-${Object.keys(members).length}.json`)
  writeFileSync(file, JSON.stringify({ ...makeClientKey(name).jwk, ...members }))
  return file
}

async function add(...flags: string[]): Promise<string> {
  const adding = ['add', '--name', 'Bank app', '--redirect-uri', 'https://bank.example/callback']
  const { stdout, stderr } = await client(...adding, ...flags, '--json')
  if (stdout === '') throw new Error(stderr)
  return JSON.parse(stdout).client_id
}

const profile = async (name: string, id: string) => {
  const { stdout, stderr } = await client('profile', name, id, '--json')
  if (stdout === '') throw new Error(stderr)
  return JSON.parse(stdout).changed
}

t.test('an operator chooses a profile for a client, sees what it changes, and takes it off', async (t) => {
  const id = await add(...keyed, keyFile('ES256'), '--pkce', 'optional', '--legacy-audience', 'true')
  const chosen = await client('profile', 'fapi2', id)
  t.match(chosen.stdout, /security_profile +none +→ +fapi2\n/)
  t.match(chosen.stdout, /pkce +optional +→ +required\n/)
  t.match(chosen.stdout, /legacy_audience +true +→ +false\n/)
  t.match(chosen.stdout, /id_token_signed_response_alg +RS256 +→ +ES256\n/)
  t.match((await client('show', id, '--json')).stdout, /"security_profile": ?"fapi2"/)
  t.match((await client('profile', 'fapi2', id)).stdout, /^nothing changed\n$/)
  t.strictSame(await profile('none', id), {
    id_token_claims: { before: 'none', after: 'scope' },
    security_profile: { before: 'fapi2', after: null },
  })
  t.strictSame(await profile('none', id), {})
  const events = (await run(['audit', '--data', data])).stdout
  t.match(events, /client-changed.*changed="pkce legacy_audience .*security_profile"/)
})

t.test('another profile takes off what the one before demanded', async (t) => {
  const id = await add(...keyed, keyFile('ES256'), '--authorization-signed-response-alg', 'EdDSA')
  const signing = {
    security_profile: { before: null, after: 'fapi2-message-signing' },
    require_signed_request_object: { before: null, after: true },
    response_modes: { before: null, after: ['jwt'] },
  }
  const chosen = await profile('fapi2-message-signing', id)
  t.match(chosen, signing)
  t.notOk('authorization_signed_response_alg' in chosen, 'an algorithm of the profile stays')
  t.strictSame(await profile('fapi2-message-signing', id), {})
  const back = await profile('fapi2', id)
  t.strictSame(back['security_profile'], { before: 'fapi2-message-signing', after: 'fapi2' })
  t.match(back, { response_modes: { before: ['jwt'], after: null } })
  t.notOk(back['require_signed_request_object']?.after)
  t.notOk('id_token_claims' in back, 'what both demand stays')
  t.match(await profile('none', id), { id_token_claims: { before: 'none', after: 'scope' } })
  await client('set', id, '--require-signed-request-object', 'true')
  t.strictSame(await profile('none', id), {}, 'what an operator demands without a profile stays')
})

t.test('a key of the RSA type signs with PS256 from then on', async (t) => {
  const id = await add(...keyed, keyFile('RS256'), '--request-object-signing-alg', 'RS256')
  t.match(await profile('fapi2', id), {
    token_endpoint_auth_signing_alg: { before: null, after: 'PS256' },
    request_object_signing_alg: { before: 'RS256', after: 'PS256' },
  })
  const fixed = await add(...keyed, keyFile('RS256', { alg: 'RS256' }))
  t.match(
    await client('profile', 'fapi2', fixed),
    { code: 1, stderr: /jwks has no key/ },
    'a key for RS256 only',
  )
})

t.test('a client without a key of its own cannot have the profile', async (t) => {
  const secret = await add()
  t.match(await client('profile', 'fapi2', secret), {
    code: 1,
    stderr: /authenticates by client_secret_basic; add another with --auth private_key_jwt/,
  })
  const trusting = JSON.stringify([{ issuer: 'https://cluster.example', subject: 'import' }])
  const workload = await add('--auth', 'private_key_jwt', '--trusted-issuers', trusting)
  t.match(await client('profile', 'fapi2', workload), { code: 1, stderr: /no key of its own/ })
  t.match(await client('profile', 'fapi2', 'client_unknown'), { code: 1 })
  t.match(await client('profile', 'fapi1', secret), { code: 64 })
})

t.test('doctor has a finding for each requirement that is missed', async (t) => {
  const settings = {
    LYCHGATE_ISSUER: 'https://auth.example.org',
    LYCHGATE_DATA: data,
    LYCHGATE_SECRET: keysSecret,
  }
  const saidOf = async (more: Readonly<Record<string, string>>) => {
    const found = await faultsOf({ ...settings, ...more }, { offline: true })
    return found.filter(({ check }) => check === 'profile fapi2')
  }
  const long = { LYCHGATE_LIFETIMES_CODE_SECONDS: '90' }
  const ids = [
    await add('--auth', 'none'),
    await add(...keyed, keyFile('RS256', { alg: 'RS256' })),
    await add(
      ...keyed,
      keyFile('ES256'),
      '--security-profile',
      'fapi2',
      '--legacy-audience',
      'true',
      '--pkce',
      'optional',
    ),
  ]
  const few = await saidOf(long)
  t.match(
    few.map(({ said }) => said),
    [
      /60 seconds/,
      /endpoints as aud/,
      /PKCE is optional/,
      /signed with RS256, so that it cannot ask for openid/,
    ],
    'one client has the profile',
  )
  for (const { found } of few.slice(1)) t.match(found, ids[2])
  t.match(few[0], { level: 'warning', found: '90', change: [/LYCHGATE_LIFETIMES_CODE_SECONDS=60/, /./] })
  t.match(few[2], { change: [`lychgate client set ${ids[2]} --pkce required`] })
  const all = await saidOf({ ...long, LYCHGATE_PROFILE: 'fapi2' })
  t.match(
    all.map(({ said }) => said),
    [/60/, /public/, /a secret/, /a key of its own/, /signs with RS256/, /aud/, /PKCE/, /openid/],
    'every client must have it',
  )
  t.match(all[1]?.found, ids[0])
  t.match(all[4]?.found, ids[1])
})

t.test('doctor names clients that registered themselves and get no tokens under the profile', async (t) => {
  const store = await openStore(`sqlite:${data}/lychgate.db`)
  const ids = Array.from({ length: 7 }, (_, index) => `client_registered_${index}`)
  await store.write(...ids.map((id) => insert('client', { ...sample.client, id, origin: 'registered' })))
  await store.close()
  const registeredIn = async (profile: string) => {
    const environment = { LYCHGATE_DATA: data, LYCHGATE_SECRET: keysSecret, LYCHGATE_PROFILE: profile }
    const found = await faultsOf(environment, { offline: true })
    return found.filter(({ said }) => said.includes('registered themselves'))
  }
  t.same(await registeredIn('none'), [])
  const [finding, ...others] = await registeredIn('fapi2')
  t.same(others, [])
  t.match(finding, {
    level: 'warning',
    expected: /private_key_jwt/,
    found: /client_registered_\d.*and 2 more/,
    change: [/registration token create/],
  })
})
