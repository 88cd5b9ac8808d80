import { globSync, readFileSync } from 'node:fs'
import { Type } from '@sinclair/typebox'
import t from 'tap'
import {
  declarationsOf,
  type Feature,
  flag,
  joined,
  repeatable,
  repeatableOf,
  section,
} from '../../src/feature/feature.ts'
import { tokenClaimsOf } from '../../src/feature/service.ts'
import { features } from '../../src/features.ts'

const load = async () => async () => {}
const one: Feature = {
  spec: 'RFC 1',
  clientMetadata: { require_one: flag('Whether it requires one.') },
  settings: { one: Type.Object({ seconds: Type.Integer() }, section('About one.')) },
  load,
}

t.test('two features cannot add the same name', async (t) => {
  const other: Feature = { ...one, spec: 'RFC 2', settings: {} }
  t.strictSame(Object.keys(joined([one], ({ settings }) => settings)), ['one'])
  t.throws(() => joined([one, other], ({ clientMetadata }) => clientMetadata), {
    message: 'RFC 2: another feature has require_one, too',
  })
})

t.test('a flag of a feature has the value that was sent, and is absent otherwise', async (t) => {
  const { read } = flag('Whether it requires one.')
  t.equal(read({ require_one: true }, 'require_one'), true)
  t.equal(read({ require_one: false }, 'require_one'), false)
  t.equal(read({ require_one: null }, 'require_one'), undefined)
  t.equal(read({}, 'require_one'), undefined)
  t.throws(() => read({ require_one: 'true' }, 'require_one'), { code: 'invalid_client_metadata' })
})

t.test('two grant types cannot read the same parameter', async (t) => {
  const parameters = { assertion: Type.Optional(Type.String()) }
  const featureOf = (name: string): Feature => ({ spec: name, grantTypes: { [name]: { parameters } }, load })
  const [first, second] = [featureOf('one'), featureOf('two')]
  t.strictSame(Object.keys(declarationsOf([first]).tokenParameters), ['assertion'])
  t.throws(() => declarationsOf([first, second]), { message: 'two: another feature has assertion, too' })
})

t.test(
  'a token parameter of several grant types is declared once, and may say that it repeats',
  async (t) => {
    const tokenParameters = { audience: repeatable('The services.'), note: Type.Optional(Type.String()) }
    const declared = declarationsOf([{ ...one, tokenParameters }])
    t.strictSame(Object.keys(declared.tokenParameters), ['audience', 'note'])
    t.strictSame(repeatableOf(declared.tokenParameters), ['audience'])
    const again = { ...one, spec: 'RFC 2', clientMetadata: {}, tokenParameters }
    t.throws(() => declarationsOf([{ ...one, tokenParameters }, again]), {
      message: 'RFC 2: another feature has audience, too',
    })
  },
)

t.test(
  'a claim of access tokens follows from the grant and the client, and is absent otherwise',
  async (t) => {
    const tokenClaims = {
      actor: {
        schema: Type.String(),
        of: ({ extra }: { extra?: Record<string, unknown> }) => extra?.['actor'],
      },
      limit: {
        schema: Type.String(),
        of: (_: object, { extra }: { extra?: Record<string, unknown> }) => extra?.['limit'],
      },
    }
    t.equal(tokenClaimsOf({ tokenClaims }, {}, {}), undefined)
    t.equal(tokenClaimsOf({ tokenClaims: {} }, { extra: { actor: 'x' } }, {}), undefined)
    t.strictSame(tokenClaimsOf({ tokenClaims }, { extra: { actor: 'x' } }, {}), { actor: 'x' })
    t.strictSame(tokenClaimsOf({ tokenClaims }, {}, { extra: { limit: 'y' } }), { limit: 'y' })
    const declared = declarationsOf([{ ...one, tokenClaims }])
    t.strictSame(Object.keys(declared.tokenClaims), ['actor', 'limit'])
  },
)

t.test('every feature names its document and loads a plugin', async (t) => {
  t.equal(new Set(features.map(({ spec }) => spec)).size, features.length)
  for (const { load, spec } of features) t.type(await load(), 'function', spec)
})

t.test('a plugin names what it takes of the application', async (t) => {
  const whole = globSync('src/**/*.ts').filter((file) => {
    const code = readFileSync(file, 'utf8').replace(/import type \{[^}]*\} from '[^']*'/g, '')
    // The type of one member, such as AppDeps['store'], names it.
    return /\bAppDeps\b(?!\[)/.test(code)
  })
  t.strictSame(
    whole.filter((file) => !/^src\/(feature|app)\/|^src\/features\.ts$/.test(file)),
    // The development server builds applications like its own.
    ['src/dev/part.ts', 'src/dev/plugin.ts'],
  )
})
