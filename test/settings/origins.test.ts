import { join } from 'node:path'
import t from 'tap'
import { ConfigError, resolveConfig } from '../../src/settings/load.ts'

t.test('each value has its source: a flag before a variable before the file', async (t) => {
  const folder = t.testdir({
    'lychgate.yaml':
      'port: 1\nhost: 127.0.0.2\ndata: /file\nlifetimes: {codeSeconds: 30, idTokenSeconds: 31}\nservice: {}\nresources: []\n',
    secret: 's'.repeat(32),
  })
  const file = join(folder, 'lychgate.yaml')
  const environment = {
    LYCHGATE_CONFIG: file,
    LYCHGATE_PORT: '2',
    LYCHGATE_HOST: '127.0.0.3',
    LYCHGATE_LIFETIMES_CODE_SECONDS: '20',
    LYCHGATE_SECRET_FILE: join(folder, 'secret'),
    LYCHGATE_STORE: '',
  }
  const resolved = resolveConfig({ mode: 'serve', flags: { port: '3', data: undefined }, environment })
  t.equal(resolved.file, file)
  t.match(resolved.config, { port: 3, host: '127.0.0.3', data: '/file' })
  t.strictSame(Object.fromEntries(resolved.origins), {
    port: { kind: 'flag', name: '--port' },
    host: { kind: 'variable', name: 'LYCHGATE_HOST' },
    data: { kind: 'file', name: file },
    resources: { kind: 'file', name: file },
    'lifetimes.codeSeconds': { kind: 'variable', name: 'LYCHGATE_LIFETIMES_CODE_SECONDS' },
    'lifetimes.idTokenSeconds': { kind: 'file', name: file },
    secret: { kind: 'variable', name: 'LYCHGATE_SECRET_FILE' },
  })
})

t.test('the derived issuer of a development server has the source of its port', async (t) => {
  const { config, origins } = resolveConfig({ mode: 'dev', environment: { LYCHGATE_PORT: '9500' } })
  t.equal(config.issuer, 'http://localhost:9500')
  t.strictSame(origins.get('issuer'), { kind: 'variable', name: 'LYCHGATE_PORT' })
  t.equal(resolveConfig({ mode: 'dev' }).origins.size, 0)
})

t.test('an option may have the name of an earlier version, and not both', async (t) => {
  const folder = t.testdir({
    'old.yaml': 'refusalsKept: 5\n',
    'both.yaml': 'refusalsKept: 5\nrejectionsKept: 6\n',
  })
  const variable = { LYCHGATE_REFUSALS_KEPT: '7' }
  const resolve = (environment: Readonly<Record<string, string>>, file?: string) =>
    resolveConfig({ mode: 'dev', environment, file: file && join(folder, file) })
  const origins = [
    [resolve({}, 'old.yaml'), 5, { kind: 'file', name: join(folder, 'old.yaml') }],
    [resolve(variable, 'old.yaml'), 7, { kind: 'variable', name: 'LYCHGATE_REFUSALS_KEPT' }],
    [
      resolve({ ...variable, LYCHGATE_REJECTIONS_KEPT: '' }),
      7,
      { kind: 'variable', name: 'LYCHGATE_REFUSALS_KEPT' },
    ],
    [resolve({ LYCHGATE_REJECTIONS_KEPT: '8' }), 8, { kind: 'variable', name: 'LYCHGATE_REJECTIONS_KEPT' }],
  ] as const
  for (const [resolved, kept, origin] of origins) {
    t.equal(resolved.config.rejectionsKept, kept)
    t.strictSame(resolved.origins.get('rejectionsKept'), origin)
  }
  t.throws(
    () => resolve({}, 'both.yaml'),
    new ConfigError(['refusalsKept: rejectionsKept is set as well; keep one of them']),
  )
  t.throws(
    () => resolve({ ...variable, LYCHGATE_REJECTIONS_KEPT: '8' }),
    new ConfigError(['LYCHGATE_REFUSALS_KEPT: LYCHGATE_REJECTIONS_KEPT is set as well; keep one of them']),
  )
})
