import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse, stringify } from 'yaml'
import { exampleEnvironment, exampleYaml } from '../../scripts/config-example.ts'
import { exampleSecret } from '../../src/config/schema.ts'
import { knownVariables } from '../../src/settings/environment.ts'
import { ConfigError, loadConfig } from '../../src/settings/load.ts'
import { confidentialPaths, configOptions, formerPaths, variableOf } from '../../src/settings/options.ts'

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const yaml = read('deploy/config.example.yaml')
const environment = read('deploy/.env.example')

/** Activates every setting: removes the # directly before one; in prose a space follows the #. */
const uncommented = (text: string) => text.replaceAll(/^( *)#(?=[\w-])/gm, '$1')

const variablesOf = (text: string): Record<string, string> =>
  Object.fromEntries(
    [...uncommented(text).matchAll(/^(LYCHGATE_\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]),
  )

t.test('the example files are generated from the schema', async (t) => {
  t.equal(yaml, exampleYaml())
  t.equal(environment, exampleEnvironment())
})

t.test('the example file as shipped changes nothing', async (t) => {
  const file = join(t.testdir({ 'lychgate.yaml': yaml }), 'lychgate.yaml')
  t.strictSame(loadConfig({ mode: 'dev', file }), loadConfig({ mode: 'dev' }))
  t.strictSame(
    environment.split('\n').filter((line) => !line.startsWith('#') && line !== ''),
    [],
  )
})

t.test('with everything uncommented and a secret it is valid', async (t) => {
  const { dev, ...production } = parse(uncommented(yaml)) as Record<string, unknown>
  const folder = t.testdir({ dev: uncommented(yaml), serve: stringify(production) })
  const [everything, file] = [join(folder, 'dev'), join(folder, 'serve')]
  const problem = 'secret: is the one of the example; make your own with lychgate keys secret'
  t.throws(() => loadConfig({ mode: 'dev', file: everything }), new ConfigError(problem))
  t.throws(() => loadConfig({ mode: 'serve', file }), new ConfigError(problem))
  const own = { LYCHGATE_SECRET: 's'.repeat(32) }
  t.strictSame(loadConfig({ mode: 'dev', file: everything, environment: own }).dev, dev)
  t.throws(() => loadConfig({ mode: 'serve', file: everything, environment: own }), { message: /\bdev\./ })
  const config = loadConfig({ mode: 'serve', file, environment: own })
  t.match(config, { port: 9400, lifetimes: { codeSeconds: 60 }, store: /^postgres:/ })
  t.match(config.scopes, [{ name: 'openid' }, { name: 'courses:read' }])
  t.match(config.resources, [{ identifier: 'https://api.example.org', accessTokenSeconds: 600 }])
})

t.test('every option is in the file, with its description', async (t) => {
  const content: unknown = parse(uncommented(yaml))
  for (const { path, schema } of configOptions()) {
    // The entry of a list is its first one.
    const names = path.replace('[]', '.0').split('.')
    // `as`: a member of any YAML; undefined fails the test.
    const value = names.reduce<unknown>(
      (at, name) => (at as Record<string, unknown> | undefined)?.[name],
      content,
    )
    t.not(value, undefined, path)
    const [firstWords = ''] = String(schema.description).split(/[.;]/)
    t.ok(yaml.replaceAll(/\n +# |\n# /g, ' ').includes(firstWords), firstWords)
  }
})

t.test(
  'every variable of a production server is in the other file, and together they are valid',
  async (t) => {
    const variables = variablesOf(environment)
    const former = Object.values(formerPaths).map(variableOf)
    t.strictSame(
      Object.keys(variables).toSorted(),
      knownVariables()
        .filter((name) => !name.startsWith('LYCHGATE_DEV_') && !former.includes(name))
        .toSorted(),
    )
    const fileNames = ['LYCHGATE_CONFIG', ...confidentialPaths.map((path) => `${variableOf(path)}_FILE`)]
    const plain = Object.fromEntries(Object.entries(variables).filter(([name]) => !fileNames.includes(name)))
    t.equal(plain['LYCHGATE_SECRET'], exampleSecret)
    const config = loadConfig({ mode: 'serve', environment: { ...plain, LYCHGATE_SECRET: 's'.repeat(32) } })
    t.match(config, {
      trustProxy: ['10.0.0.7', '10.1.0.0/16'],
      registration: { loopbackHosts: ['localhost'] },
    })
    for (const name of fileNames) t.match(variables[name], /^\//, name)
  },
)
