import { join } from 'node:path'
import t from 'tap'
import { separateServiceLinks } from '../../src/settings/environment.ts'
import { ConfigError, type ConfigSources, loadConfig } from '../../src/settings/load.ts'

function faultsOf(sources: Partial<ConfigSources>): readonly string[] {
  try {
    loadConfig({ mode: 'serve', ...sources })
  } catch (error) {
    if (error instanceof ConfigError) return error.faults
    throw error
  }
  return []
}

t.test('every error in names and values is reported at once, each with its source', async (t) => {
  const folder = t.testdir({ 'lychgate.yaml': 'prot: 1\ncodeSeconds: 5\nlifetimes: {idTokenSeconds: 0}\n' })
  const file = join(folder, 'lychgate.yaml')
  const environment = {
    LYCHGATE_ISUER: 'x',
    LYCHGATE_LOG_LEVEL: 'loud',
    LYCHGATE_SECRET_FILE: '/nowhere',
    LYCHGATE_PORT: '1',
  }
  t.strictSame(faultsOf({ environment, file, flags: { port: 'x' } }).toSorted(), [
    'LYCHGATE_ISUER: there is no such option; did you mean LYCHGATE_ISSUER?',
    'LYCHGATE_SECRET_FILE: cannot read /nowhere (ENOENT)',
    `codeSeconds (${file}): there is no such option; did you mean lifetimes.codeSeconds?`,
    `lifetimes.idTokenSeconds (${file}): must be an integer of at least 1, not 0`,
    'logLevel (LYCHGATE_LOG_LEVEL): must be fatal, error, warn, info, debug or silent, not "loud"',
    'port (--port): must be an integer from 0 to 65535, not "x"',
    `prot (${file}): there is no such option; did you mean port?`,
  ])
})

t.test('errors between values are reported at once, too', async (t) => {
  const folder = t.testdir({
    'lychgate.yaml': `issuer: https://a.example
rateLimits: off
trustProxy: [proxy, 10.0.0.1, 10.0.0.0/99]
lifetimes: {sessionIdleSeconds: 604801}
resources: [{identifier: x, name: X, scopes: [nope, openid, never]}]
`,
  })
  t.strictSame(faultsOf({ file: join(folder, 'lychgate.yaml') }), [
    'rateLimits: off is accepted on a loopback issuer only',
    'trustProxy.0: must be an IP address or CIDR range, such as 10.0.0.1 or 10.0.0.0/8',
    'trustProxy.2: must be an IP address or CIDR range, such as 10.0.0.1 or 10.0.0.0/8',
    'lifetimes.sessionIdleSeconds: must not exceed lifetimes.sessionAbsoluteSeconds',
    'resources.0.identifier: must be an absolute URI without a fragment',
    'resources.0.scopes.0: nope is not in the scope catalogue',
    'resources.0.scopes.2: never is not in the scope catalogue',
    'secret: is missing; lychgate init makes one together with a configuration, or set LYCHGATE_SECRET_FILE or LYCHGATE_SECRET to at least 32 random characters',
  ])
})

t.test('a misspelt variable does not hide that its setting is missing', async (t) => {
  t.match(faultsOf({ environment: { LYCHGATE_SECRTE: 's'.repeat(40) } }), [
    'LYCHGATE_SECRTE: there is no such option; did you mean LYCHGATE_SECRET?',
    /^secret: is missing/,
  ])
})

t.test('the message of a configuration error is the first one, in one line', async (t) => {
  const error = new ConfigError(['one\nline', 'another'])
  t.equal(error.message, 'one line')
  t.strictSame(error.faults, ['one line', 'another'])
})

/** The variables of every pod in a namespace with a Service of this name. */
const serviceLinks = (name: string) => ({
  [`${name}_SERVICE_HOST`]: '10.0.0.1',
  [`${name}_SERVICE_PORT`]: '80',
  [`${name}_SERVICE_PORT_HTTP`]: '80',
  [`${name}_PORT`]: 'tcp://10.0.0.1:80',
  [`${name}_PORT_80_TCP`]: 'tcp://10.0.0.1:80',
  [`${name}_PORT_80_TCP_PROTO`]: 'tcp',
  [`${name}_PORT_80_TCP_PORT`]: '80',
  [`${name}_PORT_80_TCP_ADDR`]: '10.0.0.1',
})

t.test('the variables of a Kubernetes Service named lychgate are ignored', async (t) => {
  const secret = { LYCHGATE_SECRET: 's'.repeat(32) }
  for (const name of ['LYCHGATE', 'LYCHGATE_POSTGRES']) {
    const environment = { ...secret, ...serviceLinks(name) }
    t.strictSame(faultsOf({ environment }), [], name)
    t.strictSame(separateServiceLinks(environment), { own: secret, links: Object.keys(serviceLinks(name)) })
  }
  const environment = { ...secret, LYCHGATE_PORT: 'tcp://10.0.0.1:80' }
  t.equal(loadConfig({ mode: 'serve', environment }).port, 9400)
  t.match(faultsOf({ environment: { ...secret, LYCHGATE_PORT: 'tcp:80' } }), [
    /^port \(LYCHGATE_PORT\): must be/,
  ])
  t.match(faultsOf({ environment: { ...secret, LYCHGATE_HTTP_PORT: '80' } }), [/there is no such option/])
})

t.test(
  'a colour without quotes is distinguished from an absent one, and an invisible one from a usable one',
  async (t) => {
    const folder = t.testdir({
      'comment.yaml': 'service:\n  accent: #2c52b3\n  help: /help\n',
      'white.yaml': 'service:\n  accent: "#fefefe"\n',
    })
    const secret = 's'.repeat(40)
    const [comment, white] = [join(folder, 'comment.yaml'), join(folder, 'white.yaml')]
    t.strictSame(faultsOf({ file: comment, flags: { secret } }), [
      `service.accent (${comment}): has no value; put what begins with # in quotes`,
    ])
    t.strictSame(faultsOf({ file: white, flags: { secret, 'service.help': '/help' } }), [
      'service.accent: #fefefe is too close to the white of the pages; choose a stronger colour, such as "#2c52b3"',
      'service.help: must be an absolute http or https URL',
    ])
  },
)

t.test('a mail server is an smtp URL with a sender, and its password is in no message', async (t) => {
  const secret = { LYCHGATE_SECRET: 's'.repeat(40) }
  const faults = (mail: Readonly<Record<string, string>>) => {
    const environment = Object.entries(mail).map(([name, value]) => [`LYCHGATE_MAIL_${name}`, value])
    return faultsOf({ environment: { ...secret, ...Object.fromEntries(environment) } })
  }
  t.strictSame(faults({}), [])
  t.strictSame(faults({ URL: 'smtps://user:pass@mail.example:465', FROM: 'Courses <a@b.example>' }), [])
  t.strictSame(faults({ URL: 'smtp://mail.example', FROM: 'a@b.example', REPLY_TO: 'c@d.example' }), [])
  const url = 'mail.url: must be smtp://HOST:PORT or smtps://HOST:PORT, with user:password@ before the host'
  for (const wrong of ['https://user:hidden@mail.example', 'mail.example:25', 'smtp://', 'user:hidden'])
    t.strictSame(faults({ URL: wrong, FROM: 'a@b.example' }), [url], wrong)
  const miscut = faults({ URL: 'smtp://user:pa@hidden/x@mail.example', FROM: 'a@b.example' })
  t.match(miscut, [/^mail\.url: is cut at a wrong place; in its user name and password write @ as %40/])
  t.notMatch(miscut, [/hidden/])
  t.strictSame(faults({ URL: 'smtp://a@b.example:pass@mail.example', FROM: 'a@b.example' }), [])
  t.strictSame(faults({ URL: 'smtp://mail.example' }), ['mail.from: is missing; mail.url needs it'])
  t.strictSame(faults({ FROM: 'a@b.example' }), ['mail.url: is missing; mail.from needs it'])
  for (const from of ['nobody', 'A <b>', 'a@b.example, c@d.example', 'a@b.example\r\nBcc: c@d.example']) {
    t.strictSame(faults({ URL: 'smtp://mail.example', FROM: from }), [
      'mail.from: must be an email address, or a name and the address in angle brackets',
    ])
  }
})

t.test('texts are checked at every depth', async (t) => {
  const folder = t.testdir({
    'flat.yaml': 'texts:\n  de: Anmelden\n  en:\n    login.title: 5\n',
    'odd.yaml': 'texts:\n  en:\n    login.title: [Sign in]\n    login.submit: ""\n    nobody.knows: x\n',
  })
  const secret = 's'.repeat(40)
  const [flat, odd] = [join(folder, 'flat.yaml'), join(folder, 'odd.yaml')]
  t.strictSame(faultsOf({ file: flat, flags: { secret } }), [
    `texts.de (${flat}): must be a section of named options, not "Anmelden"`,
  ])
  t.strictSame(faultsOf({ file: odd, flags: { secret } }), [
    'texts.en: login.title: must be a sentence, or one for each plural form: zero, one, two, few, many, other',
    'texts.en: login.submit: is empty; a button or a field would have no name',
    'texts.en: nobody.knows: there is no such text',
  ])
})

t.test('attributes of users are checked', async (t) => {
  const entry = (members: object) => ({ name: 'level', ...members })
  const faults = (...attributes: readonly object[]) =>
    faultsOf({ values: { accounts: { attributes } }, mode: 'dev' })
  t.strictSame(
    faults(
      entry({ label: 'Level', 'label#de': 'Stufe', type: 'number', visible: 'user', editable: 'user' }),
      { name: 'team', type: 'choice', values: ['rot', 'blau grün'] },
      { name: 'constructor' },
    ),
    [],
  )
  const nameRule =
    'accounts.attributes.0.name: must be up to 50 of a-z, 0-9 and _, the first of a-z, and no claim that has a meaning, such as email or groups'
  const names = [
    ...['sub', 'iss', 'aud', 'exp', 'acr', 'scope', 'client_id', 'cnf', 'email', 'preferred_username'],
    ...['name', 'locale', 'updated_at', 'address', 'groups', 'groups_truncated', 'roles', 'entitlements'],
    ...['__proto__', 'Level', 'a.b', 'a b', '1st', '_x', 'ä', `a${'b'.repeat(50)}`],
  ]
  for (const name of names) t.strictSame(faults({ name }), [nameRule], name)
  t.strictSame(
    faults(
      entry({ editable: 'user' }),
      entry({ values: ['a'] }),
      { name: 'a', type: 'choice' },
      { name: 'b', type: 'choice', values: ['x', 'x', ' y', 'a\u202eb'] },
      { name: 'c', type: 'choice', values: Array.from({ length: 51 }, (_, index) => `${index}`) },
      { name: 'd', 'labels#de': 'D' },
    ),
    [
      'accounts.attributes.5.labels#de: there is no such option; did you mean label#de?',
      'accounts.attributes.0.visible: must be user, because users may change it',
      'accounts.attributes.1.name: level is listed twice',
      'accounts.attributes.1.values: belongs to type: choice',
      'accounts.attributes.2.values: is missing; a choice needs its values',
      'accounts.attributes.3.values.1: x is listed twice',
      'accounts.attributes.3.values.2: must be up to 200 visible characters, without spaces around them',
      'accounts.attributes.3.values.3: must be up to 200 visible characters, without spaces around them',
      'accounts.attributes.4.values: has more than 50 entries',
    ],
  )
  const many = Array.from({ length: 31 }, (_, index) => ({ name: `a${index}` }))
  t.strictSame(faults(...many), ['accounts.attributes: has more than 30 entries'])
  t.match(faults({ name: 'a', type: 'date' }), [
    'accounts.attributes.0.type: must be string, number, boolean or choice, not "date"',
  ])
  t.match(faults({ name: 'a', visible: 'everyone' }), [/visible: must be administrator or user/])
  t.match(faults({ type: 'string' }), ['accounts.attributes.0.name: is missing'])
})
