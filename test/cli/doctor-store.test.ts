import { hash } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import t, { type Test } from 'tap'
import { isInContainer } from '../../src/cli/doctor/examine.ts'
import { compareClocks } from '../../src/cli/doctor/store.ts'
import { seedUsers } from '../../src/dev/users.ts'
import { insert, put } from '../../src/domain/decision.ts'
import type { Finding } from '../../src/domain/finding.ts'
import { type FinishedDelivery, finishedDeliveryKind } from '../../src/domain/logout-delivery.ts'
import { declared } from '../../src/features.ts'
import { openStore } from '../../src/storage/open.ts'
import { systemClock } from '../../src/system/system.ts'
import { addOperatorClient } from '../helpers/client-request.ts'
import { newFolder, run } from '../helpers/command.ts'
import { faultsOf } from '../helpers/doctor.ts'
import { folderWithKeys, keysSecret } from '../helpers/keys.ts'
import { approved } from '../helpers/samples.ts'

// The store of a server that is not running, copied for every test, which adds one fault to it.
const original = join(await folderWithKeys(t), 'lychgate.db')

function healthyFolder(t: Test): string {
  const data = newFolder(t)
  chmodSync(data, 0o700)
  copyFileSync(original, join(data, 'lychgate.db'))
  chmodSync(join(data, 'lychgate.db'), 0o600)
  return data
}

function settingsOf(data: string, more: Readonly<Record<string, string>> = {}) {
  const issuer = 'https://auth.example.org'
  return { LYCHGATE_ISSUER: issuer, LYCHGATE_DATA: data, LYCHGATE_SECRET: keysSecret, ...more }
}

/** The findings without the network. */
async function faults(
  data: string,
  more: Readonly<Record<string, string>> = {},
): Promise<readonly Finding[]> {
  const found = await faultsOf(settingsOf(data, more), { offline: true })
  return found.filter(({ check }) => check !== 'network')
}

function changeDatabase(data: string, sql: string): void {
  const client = new Database(join(data, 'lychgate.db'))
  client.exec(sql)
  client.close()
}

/** Every file with its mode, its time and its content. */
function contentsOf(folder: string) {
  return readdirSync(folder).map((name) => {
    const { mode, mtimeMs, uid } = statSync(join(folder, name))
    return [name, mode, mtimeMs, uid, hash('sha256', readFileSync(join(folder, name)))]
  })
}

t.test('a healthy store has no finding, and is not changed', async (t) => {
  const data = healthyFolder(t)
  const before = contentsOf(data)
  t.strictSame(await faults(data), [])
  t.strictSame(contentsOf(data), before)
})

t.test('the journal of a killed server is read and not changed', async (t) => {
  const [source, data] = [healthyFolder(t), newFolder(t)]
  chmodSync(data, 0o700)
  const client = new Database(join(source, 'lychgate.db'))
  client.exec("delete from keys where algorithm = 'ES256'")
  for (const name of readdirSync(source)) copyFileSync(join(source, name), join(data, name))
  client.close()
  const withoutIndex = () => contentsOf(data).filter(([name]) => !String(name).endsWith('-shm'))
  const before = withoutIndex()
  t.match(before, [['lychgate.db'], ['lychgate.db-wal']])
  t.match(await faults(data), [{ check: 'keys', said: 'there is no active key for ES256' }])
  t.strictSame(withoutIndex(), before)
})

t.test(
  'files that other users of the machine can read are found, with the command that fixes it',
  async (t) => {
    const data = healthyFolder(t)
    const [file, secret, yaml] = ['lychgate.db', 'secret', 'lychgate.yaml'].map((name) => join(data, name))
    writeFileSync(secret ?? '', `${keysSecret}\n`, { mode: 0o644 })
    writeFileSync(yaml ?? '', `secret: ${keysSecret}\n`, { mode: 0o644 })
    chmodSync(file ?? '', 0o644)
    chmodSync(data, 0o755)
    const { LYCHGATE_SECRET: _secret, ...settings } = settingsOf(data)
    const withFile = await faultsOf({ ...settings, LYCHGATE_SECRET_FILE: secret ?? '' }, { offline: true })
    t.match(withFile, [
      {
        check: 'data folder',
        level: 'problem',
        expected: 'mode 0700',
        found: 'mode 0755',
        change: [`chmod 0700 ${data}`],
      },
      { check: 'file modes', level: 'problem', found: 'mode 0644', change: [`chmod 0600 ${file}`] },
      { check: 'file modes', level: 'problem', found: 'mode 0644', change: [`chmod 0600 ${secret}`] },
      { check: 'network' },
    ])
    const written = await faultsOf(settings, { offline: true, file: String(yaml) })
    t.match(written[2], { check: 'file modes', change: [`chmod 0600 ${yaml}`] })
    chmodSync(data, 0o750)
    t.match((await faults(data))[0], { check: 'data folder', level: 'warning', found: 'mode 0750' })
  },
)

t.test('a missing folder, and files of another user, are found', async (t) => {
  const data = healthyFolder(t)
  const missing = join(data, 'missing')
  t.match(await faults(missing), [
    { check: 'data folder', level: 'problem', change: [`mkdir -p -m 0700 ${missing}`, /^LYCHGATE_DATA=/] },
    { check: 'database', level: 'warning', said: /^does not exist yet/ },
    { check: 'keys', level: 'not checked' },
  ])
  // Only root can change the owner of a file; other users find such a folder at the root.
  const isRoot = process.getuid?.() === 0
  if (isRoot) chownSync(join(data, 'lychgate.db'), 12_345, 12_345)
  const owner = (await faults(isRoot ? data : '/')).find(({ check }) => check === 'owner')
  t.match(
    owner,
    isRoot
      ? { level: 'problem', found: /lychgate\.db: user 12345$/, change: [/^chown -R 0:\d+ /] }
      : { level: 'warning', found: 'user 0', change: [/sudo -u '#0' lychgate doctor$/] },
  )
})

t.test('a secret that does not open the keys, and that of the development server, are found', async (t) => {
  const data = healthyFolder(t)
  t.match(await faults(data, { LYCHGATE_SECRET: 'x'.repeat(40) }), [
    {
      check: 'secret',
      level: 'problem',
      expected: 'the secret this store was last used with',
      found: 'another one, from LYCHGATE_SECRET',
      change: [/^LYCHGATE_SECRET_FILE=/, /^secret: /],
    },
  ])
  writeFileSync(join(data, 'dev-secret'), `${keysSecret}\n`, { mode: 0o600 })
  t.match(await faults(data), [{ check: 'secret', said: /^is the one of the development server/ }])
})

t.test('keys of the other kind of server are found', async (t) => {
  const data = healthyFolder(t)
  t.match(
    await faultsOf({ LYCHGATE_DATA: data, LYCHGATE_SECRET: keysSecret }, { mode: 'dev', offline: true }),
    [{ check: 'keys', level: 'problem', said: /^its keys are not those of a development server/ }],
  )
  changeDatabase(data, "update keys set sealed_private = 'dev.' || sealed_private")
  t.match(await faults(data), [{ check: 'keys', said: /^made by the development server/ }])
})

t.test('a database that is newer, older, damaged, foreign or no database is found', async (t) => {
  const cases: [string, (data: string) => void, object][] = [
    [
      'newer',
      (data) =>
        changeDatabase(
          data,
          "insert into __drizzle_migrations (hash, created_at) values ('x', 99999999999999)",
        ),
      { check: 'schema', level: 'problem', said: /a newer version of Lychgate/, change: [/backup/] },
    ],
    [
      'older',
      (data) =>
        changeDatabase(
          data,
          'delete from __drizzle_migrations where created_at = (select max(created_at) from __drizzle_migrations)',
        ),
      { check: 'schema', level: 'warning', said: /brings it up to date when it starts$/ },
    ],
    [
      'damaged',
      (data) => {
        const file = join(data, 'lychgate.db')
        const bytes = readFileSync(file)
        // The middle of the file: the tables of its schema can still be found.
        bytes.fill(0xff, 40_960, 81_920)
        writeFileSync(file, bytes)
      },
      { check: 'database', level: 'problem', said: /damaged|malformed/ },
    ],
    [
      'foreign',
      (data) => {
        writeFileSync(join(data, 'lychgate.db'), '')
        changeDatabase(data, 'create table theirs (a)')
      },
      { check: 'schema', level: 'problem', said: 'the database belongs to another program' },
    ],
    [
      'no database',
      (data) =>
        writeFileSync(join(data, 'lychgate.db'), 'not one, and long enough to have a header'.repeat(9)),
      { check: 'database', level: 'problem', said: /cannot be opened: file is not a database$/ },
    ],
  ]
  for (const [about, damage, finding] of cases) {
    const data = healthyFolder(t)
    damage(data)
    const before = contentsOf(data)
    t.match(await faults(data), [finding], about)
    t.strictSame(contentsOf(data), before, `${about}: left as it was`)
  }
})

t.test('keys that are missing, due or from the future, and development users, are found', async (t) => {
  const cases: [string, string, object][] = [
    ['none', 'delete from keys', { level: 'warning', said: /^there are none yet/ }],
    [
      'one missing',
      "delete from keys where algorithm = 'EdDSA'",
      { level: 'problem', said: 'there is no active key for EdDSA' },
    ],
    [
      'due',
      "update keys set created_at = 1, active_at = 1 where algorithm = 'RS256'",
      { level: 'warning', said: 'RS256 should have a successor by now', change: ['lychgate keys rotate'] },
    ],
    [
      'future',
      'update keys set created_at = created_at + 90000, active_at = active_at + 90000',
      { level: 'problem', said: /the clock of this machine was set back$/ },
    ],
  ]
  for (const [about, sql, finding] of cases) {
    const data = healthyFolder(t)
    changeDatabase(data, sql)
    t.match(await faults(data), [{ check: 'keys', ...finding }], about)
  }
  const data = healthyFolder(t)
  changeDatabase(data, 'update keys set created_at = 1, active_at = 1')
  t.match(await faults(data, { LYCHGATE_KEYS_ROTATION_SECONDS: '0' }), [
    {
      check: 'keys',
      level: 'warning',
      change: [
        'lychgate keys rotate',
        'LYCHGATE_KEYS_ROTATION_SECONDS=7776000',
        'keys: { rotationSeconds: 7776000 }   (in the file)',
      ],
    },
  ])
})

t.test('PKCE is required of a client whose requests all had a challenge, and of no other', async (t) => {
  const data = healthyFolder(t)
  const store = await openStore(`sqlite:${data}/lychgate.db`)
  const request = {
    name: 'A "pkceOptional":true name',
    redirectUris: ['https://app.example.com'],
    postLogoutRedirectUris: [],
    idTokenSignedResponseAlg: 'RS256',
  } as const
  const known = { declared, scopes: [], resources: [] }
  /** Adds a client whose recent codes were requested with and without a challenge, and returns its id. */
  const add = async (seed: number, pkce: 'required' | 'optional', ...challenged: readonly boolean[]) => {
    const fresh = { id: Buffer.alloc(16, seed), secret: Buffer.alloc(32, seed) }
    const { client } = addOperatorClient({ ...request, pkce }, known, fresh, systemClock())
    const { codeChallenge, ...without } = { ...approved, clientId: client.id }
    const grants = challenged.map((has, at) => ({
      ...(has ? { ...without, codeChallenge } : without),
      id: Buffer.alloc(12, seed * 16 + at).toString('base64url'),
    }))
    // Of a device: it has no code.
    const device = { ...without, redirectUri: '', id: Buffer.alloc(12, seed * 16 + 15).toString('base64url') }
    await store.write(
      insert('client', client),
      ...[...grants, device].map((grant) => ({ op: 'insertGrant', grant }) as const),
    )
    return client.id
  }
  await add(1, 'required', false)
  const always = await add(2, 'optional', true, true)
  const sometimes = await add(3, 'optional', true, false, true)
  const never = await add(4, 'optional')
  await store.close()
  const found = await faults(data)
  const counts = [
    [always, '2 of 2'],
    [sometimes, '2 of 3'],
    [never, '0 of 0'],
  ]
  t.match(found, [
    {
      check: 'clients',
      level: 'warning',
      expected: /for an app that sends none it breaks sign-in$/,
      found: counts.map(([id, count]) => `${id} (${count} recent requests had one)`).join(', '),
      change: [
        `lychgate client set ${always} --pkce required`,
        'let each other app send code_challenge first',
      ],
    },
  ])
  t.equal(found.length, 1)
})

t.test('a client that may leave PKCE out until it uses it is named after 30 days', async (t) => {
  const data = healthyFolder(t)
  const store = await openStore(`sqlite:${data}/lychgate.db`)
  const day = 86_400
  const request = {
    name: 'App',
    redirectUris: ['https://app.example.com'],
    postLogoutRedirectUris: [],
  } as const
  const add = async (seed: number, days: number) => {
    const fresh = { id: Buffer.alloc(16, seed), secret: Buffer.alloc(32, seed) }
    const members = { ...request, idTokenSignedResponseAlg: 'RS256', pkce: 'auto' } as const
    const known = { declared, scopes: [], resources: [] }
    const { client } = addOperatorClient(members, known, fresh, systemClock() - days * day)
    await store.write(insert('client', client))
    return client.id
  }
  const [late] = [await add(1, 31), await add(2, 29)]
  const learned = await add(3, 31)
  await store.write({ op: 'learnPkce', clientId: learned, at: systemClock() })
  await store.close()
  const found = await faults(data)
  t.match(found, [
    {
      check: 'clients',
      level: 'warning',
      found: `${late} (0 of 0 recent requests had one)`,
      change: [
        'switch PKCE on in the app; for an app that has no PKCE:',
        `lychgate client set ${late} --pkce optional`,
      ],
    },
  ])
  t.equal(found.length, 1)
})

t.test('a client that took none of its logout tokens is found', async (t) => {
  const data = healthyFolder(t)
  const store = await openStore(`sqlite:${data}/lychgate.db`)
  const now = systemClock()
  const delivery = (sid: string, clientId: string, outcome: FinishedDelivery['outcome']) =>
    put(finishedDeliveryKind, {
      ...{ sid, userId: 'user', clientId, endedAt: now, tries: 1 },
      ...{ outcome, finishedAt: now, expiresAt: now + 60 },
    })
  await store.write(
    delivery('1', 'client_sometimes', 'failed'),
    delivery('2', 'client_sometimes', 'delivered'),
    delivery('3', 'client_always', 'delivered'),
    delivery('4', 'client_never', 'failed'),
    delivery('5', 'client_never', 'failed'),
  )
  await store.close()
  t.match(await faults(data), [
    {
      check: 'logout',
      level: 'warning',
      found: 'client_never',
      change: ['lychgate logout deliveries --client client_never --failed', /backchannel-logout-uri/],
    },
  ])
})

t.test('users of the development server in a production store are found', async (t) => {
  const data = healthyFolder(t)
  const store = await openStore(`sqlite:${data}/lychgate.db`)
  await seedUsers(store, systemClock)
  await store.close()
  t.match(await faults(data), [
    {
      check: 'users',
      level: 'problem',
      found: 'alice, bob',
      change: ['lychgate user delete alice', 'lychgate user delete bob'],
    },
  ])
})

t.test('a database whose clock is more than five seconds off is found', async (t) => {
  const at = (seconds: number) => compareClocks('the database', { before: 100, at: seconds, after: 102 })
  for (const near of [95, 100, 101, 102, 107]) t.match(at(near), { level: 'ok' }, String(near))
  const behind = { level: 'problem', said: 'of the database is 6 seconds behind this one', change: [/ntp/] }
  t.match(at(94), behind)
  t.match(at(108), { level: 'problem', said: 'of the database is 6 seconds ahead of this one' })
})

t.test('settings that are valid but unlikely to be intended are found', async (t) => {
  const data = healthyFolder(t)
  const local = { LYCHGATE_ISSUER: 'http://localhost:9400' }
  const about = (environment: Record<string, string>, isContainer = false) =>
    faultsOf(settingsOf(data, environment), { offline: true, isContainer })
  t.match(await about({ ...local, LYCHGATE_RATE_LIMITS: 'off' }), [
    { check: 'rate limits', level: 'warning', change: ['LYCHGATE_RATE_LIMITS=on', /^rateLimits: on/] },
    {},
  ])
  t.match(await about({ ...local, LYCHGATE_PORT: '9500' }), [
    {
      check: 'port',
      level: 'warning',
      found: 'http://localhost:9400',
      change: ['LYCHGATE_PORT=9400', /^port: 9400/],
    },
    {},
  ])
  t.match(await about({ LYCHGATE_STORE: 'sqlite::memory:' }), [
    { check: 'store', level: 'problem' },
    { check: 'keys' },
    {},
  ])
  t.match(await about(local, true), [
    {
      check: 'container',
      level: 'warning',
      found: '127.0.0.1',
      change: ['LYCHGATE_HOST=0.0.0.0', /^host: /],
    },
    {
      check: 'container',
      level: 'warning',
      found: 'http://localhost:9400',
      change: [/^LYCHGATE_ISSUER=https/, /./],
    },
    {},
  ])
  t.match(await about({ LYCHGATE_ISSUER: 'https://auth.example.org/' }), [
    {
      check: 'settings',
      level: 'problem',
      change: ['LYCHGATE_ISSUER=https://auth.example.org', /^issuer: https/],
    },
  ])
  t.match(await about({ LYCHGATE_ISUER: 'x' }), [
    { check: 'settings', said: /did you mean LYCHGATE_ISSUER\?$/ },
  ])
})

t.test('the command prints a line per check and the setting to change, and ends with 0 or 1', async (t) => {
  const data = healthyFolder(t)
  const good = settingsOf(data, { LYCHGATE_HOST: '0.0.0.0' })
  const bad = { ...good, LYCHGATE_SECRET: 'x'.repeat(40) }
  const [healthy, ill, json] = await Promise.all([
    run(['doctor', '--offline'], { environment: good }),
    run(['doctor', '--offline'], { environment: bad }),
    run(['doctor', '--offline', '--json'], { environment: bad }),
  ])
  t.match(healthy, { code: 0, stderr: '', stdout: /^ok {11}settings: valid for lychgate serve\n/ })
  t.match(healthy.stdout, /\nwarning {6}administrators: there are no users yet/)
  t.match(healthy.stdout, /\n\d+ ok, 1 warning, 0 problems, 1 not checked\n$/)
  t.match(ill, { code: 1, stderr: 'lychgate: doctor: 1 problem found\n' })
  t.match(
    ill.stdout,
    /\nproblem {6}secret: does not open [^\n]+\n {13}expected {2}the secret [^\n]+\n {13}found {5}another one[^\n]+\n {13}change {4}LYCHGATE_SECRET_FILE=/,
  )
  t.match(JSON.parse(json.stdout), {
    healthy: false,
    summary: /1 problem,/,
    findings: [{ check: 'settings', level: 'ok' }],
  })
  t.equal(json.code, 1)
})

t.test('a virtual machine that was made of an image is no container', async (t) => {
  const root = t.testdir({
    machine: { '.dockerenv': '', proc: { self: { ns: { pid: t.fixture('symlink', 'pid:[4026531836]') } } } },
    container: {
      '.dockerenv': '',
      proc: { self: { ns: { pid: t.fixture('symlink', 'pid:[4026532201]') } } },
    },
    unknown: { run: { '.containerenv': '' } },
    bare: {},
  })
  const found = ['machine', 'container', 'unknown', 'bare'].map((name) =>
    isInContainer({}, `${root}/${name}`),
  )
  t.strictSame(found, [false, true, true, false])
  t.ok(isInContainer({ KUBERNETES_SERVICE_HOST: '10.0.0.1' }, `${root}/bare`))
})
