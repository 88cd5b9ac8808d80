import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { configTable, withConfigTable } from '../../scripts/config-table.ts'
import { nearest } from '../../src/config/error.ts'
import { keyPolicy } from '../../src/keys/key-policy.ts'
import { ConfigError, type ConfigSources, loadConfig, storeUrl } from '../../src/settings/load.ts'
import { configOptions, variableOf } from '../../src/settings/options.ts'

const secret = 's'.repeat(32)

function fileOf(t: Test, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'lychgate-config-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'lychgate.yaml')
  writeFileSync(file, text)
  return file
}

function errorOf(sources: Partial<ConfigSources>): string {
  try {
    loadConfig({ mode: 'dev', ...sources })
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
  return 'accepted'
}

t.test('without settings a development server has every default', async (t) => {
  const config = loadConfig({ mode: 'dev' })
  t.match(config, {
    mode: 'dev',
    issuer: 'http://localhost:9400',
    host: '127.0.0.1',
    port: 9400,
    lifetimes: { codeSeconds: 60, accessTokenSeconds: 3600 },
    registration: { loopbackHosts: ['localhost'], foreignRedirects: 'refuse' },
    rateLimits: 'on',
  })
  t.equal(config.scopes.length, 38)
  t.equal(config.secret, undefined)
  t.equal(storeUrl(config), 'sqlite:./data/lychgate.db')
})

t.test('flags win over variables, variables over the file, the file over defaults', async (t) => {
  const file = fileOf(
    t,
    'port: 1001\nhost: 0.0.0.1\ndata: /from/file\nlifetimes:\n  codeSeconds: 30\n  idTokenSeconds: 31\n',
  )
  const environment = {
    LYCHGATE_PORT: '1002',
    LYCHGATE_HOST: '0.0.0.2',
    LYCHGATE_LIFETIMES_CODE_SECONDS: '20',
    UNRELATED: 'x',
  }
  const config = loadConfig({ mode: 'dev', flags: { port: '1003', issuer: undefined }, environment, file })
  t.match(config, { port: 1003, host: '0.0.0.2', data: '/from/file', logLevel: 'info' })
  t.match(config.lifetimes, { codeSeconds: 20, idTokenSeconds: 31, accessTokenSeconds: 3600 })
})

t.test('LYCHGATE_CONFIG names the file, and --config overrides it', async (t) => {
  const [one, other] = [fileOf(t, 'port: 1\n'), fileOf(t, 'port: 2\n')]
  const environment = { LYCHGATE_CONFIG: one }
  t.equal(loadConfig({ mode: 'dev', environment }).port, 1)
  t.equal(loadConfig({ mode: 'dev', environment, file: other }).port, 2)
})

t.test('every option outside lists has its own variable, derived from its path', async (t) => {
  t.equal(variableOf('issuer'), 'LYCHGATE_ISSUER')
  t.equal(variableOf('lifetimes.codeSeconds'), 'LYCHGATE_LIFETIMES_CODE_SECONDS')
  t.equal(variableOf('rateLimits'), 'LYCHGATE_RATE_LIMITS')
  const variables = configOptions().flatMap(({ variable }) => variable ?? [])
  t.equal(new Set(variables).size, variables.length)
  const environment = {
    LYCHGATE_SERVICE_NAME: 'School',
    LYCHGATE_RATE_LIMITS: 'off',
    LYCHGATE_TRUST_PROXY: '10.0.0.0/8, ::1',
    LYCHGATE_REGISTRATION_LOOPBACK_HOSTS: 'localhost',
    LYCHGATE_DRAIN_SECONDS: '0',
  }
  t.match(loadConfig({ mode: 'dev', environment }), {
    service: { name: 'School' },
    rateLimits: 'off',
    trustProxy: ['10.0.0.0/8', '::1'],
    registration: { loopbackHosts: ['localhost'] },
    drainSeconds: 0,
  })
})

t.test('an empty variable counts as absent', async (t) => {
  const environment = {
    LYCHGATE_PORT: '',
    LYCHGATE_SECRET: '',
    LYCHGATE_SECRET_FILE: '',
    LYCHGATE_CONFIG: '',
  }
  t.match(loadConfig({ mode: 'dev', environment }), { port: 9400, secret: undefined })
})

t.test('secret and store are read from files, without the trailing line break', async (t) => {
  const environment = {
    LYCHGATE_SECRET_FILE: fileOf(t, `${secret}\r\n`),
    LYCHGATE_STORE_FILE: fileOf(t, 'postgres://u:p@db/lychgate\n'),
  }
  const config = loadConfig({ mode: 'dev', environment })
  t.equal(config.secret, secret)
  t.equal(storeUrl(config), 'postgres://u:p@db/lychgate')
})

t.test(
  'a development server on another port is another issuer, unless its issuer is configured',
  async (t) => {
    t.equal(loadConfig({ mode: 'dev', flags: { port: '9500' } }).issuer, 'http://localhost:9500')
    t.equal(loadConfig({ mode: 'dev', environment: { LYCHGATE_PORT: '80' } }).issuer, 'http://localhost')
    const flags = { port: '9500', issuer: 'http://127.0.0.1:9500' }
    t.equal(loadConfig({ mode: 'dev', flags }).issuer, 'http://127.0.0.1:9500')
    const environment = { LYCHGATE_SECRET: secret, LYCHGATE_PORT: '9500' }
    t.equal(loadConfig({ mode: 'serve', environment }).issuer, 'http://localhost:9400')
  },
)

t.test('list entries of the file get their defaults', async (t) => {
  const file = fileOf(
    t,
    'resources:\n  - identifier: https://api.example.com\n    name: API\n    scopes: [openid]\nscopes:\n  - {name: openid, group: You, access: identity, description: Who you are}\n',
  )
  const { resources, scopes } = loadConfig({ mode: 'dev', file })
  t.same(resources, [
    { identifier: 'https://api.example.com', name: 'API', scopes: ['openid'], tokenFormat: 'opaque' },
  ])
  t.equal(scopes.length, 1)
})

const rejectedVariables: [Record<string, string>, string][] = [
  [{ LYCHGATE_ISUER: 'x' }, 'LYCHGATE_ISUER: there is no such option; did you mean LYCHGATE_ISSUER?'],
  [{ LYCHGATE_XYZZY_PLUGH: 'x' }, 'LYCHGATE_XYZZY_PLUGH: there is no such option'],
  [{ LYCHGATE_SCOPES: 'x' }, 'LYCHGATE_SCOPES: scopes is for the configuration file only'],
  [{ LYCHGATE_TEXTS: 'x' }, 'LYCHGATE_TEXTS: texts is for the configuration file only'],
  [{ LYCHGATE_PORT: '70000' }, 'port (LYCHGATE_PORT): must be an integer from 0 to 65535, not 70000'],
  [{ LYCHGATE_PORT: '94oo' }, 'port (LYCHGATE_PORT): must be an integer from 0 to 65535, not "94oo"'],
  [
    { LYCHGATE_LOG_LEVEL: 'loud' },
    'logLevel (LYCHGATE_LOG_LEVEL): must be fatal, error, warn, info, debug or silent, not "loud"',
  ],
  [{ LYCHGATE_SECRET: 'short' }, 'secret (LYCHGATE_SECRET): must be text of at least 32 characters'],
  [
    { LYCHGATE_REGISTRATION_LOOPBACK_HOSTS: 'example' },
    'registration.loopbackHosts.0 (LYCHGATE_REGISTRATION_LOOPBACK_HOSTS): must be localhost, not "example"',
  ],
  [{ LYCHGATE_SECRET_FILE: '/nowhere' }, 'LYCHGATE_SECRET_FILE: cannot read /nowhere (ENOENT)'],
  [
    { LYCHGATE_SECRET_FILE: '/nowhere', LYCHGATE_SECRET: secret },
    'LYCHGATE_SECRET_FILE: LYCHGATE_SECRET is set as well; keep one of them',
  ],
  [{ LYCHGATE_CONFIG: '/nowhere.yaml' }, 'config: cannot read /nowhere.yaml (ENOENT)'],
]
for (const [environment, line] of rejectedVariables) {
  t.test(`the environment ${Object.keys(environment)} is rejected: ${line}`, async (t) => {
    t.equal(errorOf({ environment }), line)
  })
}

const rejectedFiles: [string, string][] = [
  [
    'resources: [{identifier: "https://a.example", name: A, scopes: [], "nam#de": B}]',
    'resources.0.nam#de: there is no such option; did you mean name#de?',
  ],
  [
    'resources: [{identifier: "https://a.example", name: A, scopes: [], "name#d e": B}]',
    'resources.0.name#d e: there is no such option; did you mean name#de?',
  ],
  [
    'resources: [{identifier: "https://a.example", name: A, scopes: [], "name#de": 1}]',
    'resources.0.name#de (FILE): must be text, and not empty, not 1',
  ],
  ['isuer: x', 'isuer (FILE): there is no such option; did you mean issuer?'],
  [
    'lifetimes: {codeSecond: 5}',
    'lifetimes.codeSecond (FILE): there is no such option; did you mean codeSeconds?',
  ],
  ['"a/b\\nc": 1', 'a/b c (FILE): there is no such option'],
  ['lifetimes:', 'lifetimes (FILE): must be a section of named options'],
  [
    'lifetimes: {codeSeconds: 601}',
    'lifetimes.codeSeconds (FILE): must be an integer from 1 to 600, not 601',
  ],
  ['port: "9400"', 'port (FILE): must be an integer from 0 to 65535, not "9400"'],
  ['service: {name: ""}', 'service.name (FILE): must be text, and not empty, not ""'],
  ['secret: 12345', 'secret (FILE): must be text of at least 32 characters'],
  ['trustProxy: 10.0.0.1', 'trustProxy (FILE): must be a list, not "10.0.0.1"'],
  ['resources: [{identifier: "https://x.example", scopes: []}]', 'resources.0.name (FILE): is missing'],
  ['a: [', 'FILE: not valid YAML: '],
  ['port: 1\nport: 2', 'FILE: not valid YAML: Map keys must be unique'],
  ['port: !env PORT', 'FILE: not valid YAML: Unresolved tag: !env'],
  ['- port', 'FILE: must be a YAML mapping of options'],
]
for (const [text, line] of rejectedFiles) {
  t.test(`the file ${JSON.stringify(text)} is rejected: ${line}`, async (t) => {
    const file = fileOf(t, text)
    const rejection = errorOf({ file }).replaceAll(file, 'FILE')
    t.equal(line.includes('YAML') ? rejection.slice(0, line.length) : rejection, line)
    t.notMatch(rejection, /\n/, 'one line')
  })
}

t.test('a variable inside a broken section does not hide the error of the file', async (t) => {
  const environment = { LYCHGATE_LIFETIMES_CODE_SECONDS: '5' }
  t.match(errorOf({ file: fileOf(t, 'lifetimes: soon'), environment }), /^lifetimes \(.*must be a section/)
})

t.test('a wrong flag is named as a flag', async (t) => {
  t.equal(errorOf({ flags: { port: 'x' } }), 'port (--port): must be an integer from 0 to 65535, not "x"')
})

t.test('no error shows the secret or the URL of the store', async (t) => {
  const rejection = errorOf({ environment: { LYCHGATE_STORE: 'mysql://u:hunter2@db' } })
  t.equal(rejection, 'store: must be sqlite:<file> or postgres://<user>@<host>/<database>')
  t.notMatch(errorOf({ environment: { LYCHGATE_SECRET: 'hunter2' } }), /hunter2/)
})

t.test('a store whose password moves the host is rejected without being shown', async (t) => {
  for (const store of [
    'postgres://app:Geheim1/2@db.example/x',
    'postgres://app:pa@Geheim1/w#rd@db.example:5432/x',
    'postgres://app:Geheim1?2@db.example/x',
    'postgres://app:pass#Geheim1@db.example/x',
    'postgres://app:Geheim1',
  ])
    t.equal(
      errorOf({ environment: { LYCHGATE_STORE: store } }),
      'store: is cut at a wrong place; in its user name and password write @ as %40, / as %2F, ? as %3F, # as %23 and % as %25',
    )
  for (const store of [
    'postgres://app:pa@ss@db.example/auth',
    'postgres://app:pass@/auth?host=/run/postgresql',
    'postgres:///auth?user=app@db&password=x',
    'postgres://app:pa%2Fss@[::1]:5432',
  ])
    t.equal(loadConfig({ mode: 'dev', environment: { LYCHGATE_STORE: store } }).store, store)
})

t.test('a store with several hosts is rejected, in either notation', async (t) => {
  for (const store of [
    'postgres://a,b/lychgate?target_session_attrs=read-write',
    'postgresql://user:pass,word@a:5432,b:5432/lychgate',
    'postgres:///lychgate?sslmode=require&host=a,b',
    'postgres://user@/lychgate?host=a%2Cb',
    'postgres://a/lychgate?port=5432,5433',
  ]) {
    t.equal(
      errorOf({ environment: { LYCHGATE_STORE: store } }),
      'store: names several hosts, which is not supported; name one address that leads to the primary, such as that of HAProxy',
      store,
    )
  }
  for (const store of [
    'postgres://user:pass,word@a/lychgate',
    'postgres://user@a:5432/one,two?application_name=a,b',
    'sqlite:one,two.db',
  ]) {
    t.equal(loadConfig({ mode: 'dev', environment: { LYCHGATE_STORE: store } }).store, store)
  }
})

const canonical =
  'issuer: must be written without user name, query, fragment and trailing slash, in lower case: '
const issuers: [string, string][] = [
  ['https://auth.example.com', 'accepted'],
  ['https://auth.example.com:8443/tenant', 'accepted'],
  ['http://127.0.0.1:9400', 'accepted'],
  ['http://[::1]:9400', 'accepted'],
  ['https://auth.example.com/', `${canonical}https://auth.example.com`],
  ['https://auth.example.com/t/', `${canonical}https://auth.example.com/t`],
  ['HTTPS://Auth.example.com', `${canonical}https://auth.example.com`],
  ['https://auth.example.com:443', `${canonical}https://auth.example.com`],
  ['https://auth.example.com?x', `${canonical}https://auth.example.com`],
  ['https://auth.example.com#x', `${canonical}https://auth.example.com`],
  ['https://u:p@auth.example.com', `${canonical}https://auth.example.com`],
  ['https://auth.example.com/a/../b', `${canonical}https://auth.example.com/b`],
  ['http://127.1:9400', `${canonical}http://127.0.0.1:9400`],
  [
    'http://auth.example.com/t',
    'issuer: http is accepted on localhost, names below it, 127.0.0.1 and [::1] only; write https://auth.example.com/t',
  ],
  ['auth.example.com', 'issuer: must be an absolute http or https URL, such as https://auth.example.com'],
  [
    'ftp://auth.example.com',
    'issuer: must be an absolute http or https URL, such as https://auth.example.com',
  ],
]
for (const [issuer, line] of issuers) {
  t.test(`the issuer ${issuer} is ${line}`, async (t) => {
    t.equal(errorOf({ flags: { issuer } }), line)
  })
}

const inconsistent: [string, string][] = [
  [
    'keys: {publishAheadSeconds: 419}',
    'keys.publishAheadSeconds: must be at least 420, lifetimes.metadataCacheSeconds and twice keys.reloadSeconds: by then every server and client knows the key',
  ],
  [
    'lifetimes: {metadataCacheSeconds: 86281}',
    'keys.publishAheadSeconds: must be at least 86401, lifetimes.metadataCacheSeconds and twice keys.reloadSeconds: by then every server and client knows the key',
  ],
  [
    'keys: {rotationSeconds: 60, publishAheadSeconds: 420}',
    'keys.rotationSeconds: must be 0 or at least 77342: keys stay as long as what they sealed, and there is room for 200',
  ],
  ['keys: {rotationSeconds: 315576001}', 'keys.rotationSeconds: must be at most 315576000 (ten years)'],
  ['issuer: https://a.example\nrateLimits: off', 'rateLimits: off is accepted on a loopback issuer only'],
  ['trustProxy: [localhost]', 'trustProxy.0: must be an IP address or CIDR range'],
  ['trustProxy: ["::1/128", 10.0.0.0/33]', 'trustProxy.1: must be an IP address or CIDR range'],
  ['trustProxy: [10.0.0.0/8/8]', 'trustProxy.0: must be an IP address or CIDR range'],
  ['trustProxy: [10.0.0.0/x]', 'trustProxy.0: must be an IP address or CIDR range'],
  ['service: {policy: "javascript:alert(1)"}', 'service.policy: must be an absolute http or https URL'],
  [
    'lifetimes: {idTokenSeconds: 400000000}',
    'lifetimes.idTokenSeconds: must be at most 315576000 (ten years)',
  ],
  [
    'lifetimes: {refreshTokenIdleSeconds: 7776001}',
    'lifetimes.refreshTokenIdleSeconds: must not exceed lifetimes.refreshTokenAbsoluteSeconds',
  ],
  [
    'lifetimes: {sessionIdleSeconds: 604801}',
    'lifetimes.sessionIdleSeconds: must not exceed lifetimes.sessionAbsoluteSeconds',
  ],
  [
    'lifetimes: {accessTokenSeconds: 2592001}',
    'lifetimes.accessTokenSeconds: must not exceed lifetimes.refreshTokenIdleSeconds',
  ],
  [
    'resources: [{identifier: "https://x.example", name: X, scopes: [], accessTokenSeconds: 2592001}]',
    'resources.0.accessTokenSeconds: must not exceed lifetimes.refreshTokenIdleSeconds',
  ],
  ['scopes: []', 'scopes: openid is missing from the catalogue'],
  [
    'scopes: [{name: a, group: g, access: read, description: d}, {name: a, group: g, access: read, description: d}]',
    'scopes.1.name: a is listed twice',
  ],
  [
    'resources: [{identifier: "https://x.example#f", name: X, scopes: []}]',
    'resources.0.identifier: must be an absolute URI without a fragment',
  ],
  [
    'resources: [{identifier: "x.example", name: X, scopes: []}]',
    'resources.0.identifier: must be an absolute URI without a fragment',
  ],
  [
    'resources: [{identifier: "https://x.example/a b", name: X, scopes: []}]',
    'resources.0.identifier: must be an absolute URI without a fragment',
  ],
  [
    'resources: [{identifier: "http://localhost:9400/", name: X, scopes: []}]',
    'resources.0.identifier: is the issuer itself, which is always a resource; remove the entry',
  ],
  [
    'resources: [{identifier: "https://x.example", name: X, scopes: []}, {identifier: "https://x.example/", name: Y, scopes: []}]',
    'resources.1.identifier: https://x.example/ is listed twice',
  ],
  [
    'resources: [{identifier: "urn:x:y", name: X, scopes: [openid, nope]}]',
    'resources.0.scopes.1: nope is not in the scope catalogue',
  ],
]
for (const [text, line] of inconsistent) {
  t.test(`the file ${JSON.stringify(text).slice(0, 70)} is inconsistent: ${line}`, async (t) => {
    t.equal(errorOf({ file: fileOf(t, text) }).slice(0, line.length), line)
  })
}

t.test('a production server needs a secret', async (t) => {
  t.match(errorOf({ mode: 'serve' }), /^secret: is missing; lychgate init /)
  const environment = { LYCHGATE_SECRET: secret }
  t.equal(loadConfig({ mode: 'serve', environment, flags: { issuer: 'https://a.example' } }).mode, 'serve')
})

t.test('only a similar name is suggested', async (t) => {
  t.equal(nearest('prot', ['port', 'host']), 'port')
  t.equal(nearest('LIFETIME', ['lifetimes', 'limits']), 'lifetimes')
  t.equal(nearest('entirely', ['port', 'host']), undefined)
  t.equal(nearest('port', []), undefined)
})

t.test(
  'the table has a row for every option, and only the text between its markers is replaced',
  async (t) => {
    const table = configTable()
    t.match(
      table,
      '| `lifetimes.codeSeconds` | `LYCHGATE_LIFETIMES_CODE_SECONDS` | `60` | Lifetime of an authorization code. |',
    )
    t.match(table, /\| `scopes` \| file only \| 38 entries \|/)
    t.match(table, /\| `resources\[\]\.identifier` \| file only \| {2}\|/)
    t.equal(table.split('\n').length, configOptions().length + 2)
    const text = 'before\n<!-- config:start -->\nold\n<!-- config:end -->\nafter\n'
    const renewed = withConfigTable(text)
    t.equal(renewed, `before\n<!-- config:start -->\n${table}\n<!-- config:end -->\nafter\n`)
    t.equal(withConfigTable(renewed), renewed)
    t.throws(() => withConfigTable('no markers'), {
      message: 'docs/configuration.md has no <!-- config:start --> … <!-- config:end -->',
    })
  },
)

t.test('keys verify as long as anything they signed or sealed is valid, and a little longer', async (t) => {
  const overlap = (text: string) => {
    const config = loadConfig({ mode: 'dev', file: fileOf(t, text) })
    return keyPolicy(config).overlapSeconds
  }
  const [lag, day] = [360, 86_400]
  t.strictSame(
    overlap(''),
    { signing: 7 * day + lag, handle: 180 * day + lag },
    'sessions and known-browser cookies',
  )
  t.equal(overlap('lifetimes: {idTokenSeconds: 700000}').signing, 700_000 + lag)
  const resource =
    '{identifier: "https://api.example", name: API, scopes: [], tokenFormat: jwt, accessTokenSeconds: 800000}'
  t.equal(overlap(`resources: [${resource}]`).signing, 800_000 + lag)
  const long = overlap('lifetimes: {refreshTokenAbsoluteSeconds: 20000000}')
  t.equal(
    long.handle,
    60 + 20_000_000 + 10 + 3600 + lag,
    'a code, all its refresh tokens, and the last access token',
  )
  t.equal(overlap('keys: {reloadSeconds: 100}\nlifetimes: {metadataCacheSeconds: 1}').signing, 7 * day + 101)
})
