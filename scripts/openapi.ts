/**
 * Writes openapi/openapi.json from the route schemas of the default configuration. `--check` compares instead and
 * fails on a difference.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import swagger from '@fastify/swagger'
import { buildApp } from '../src/app.ts'
import { declared } from '../src/features.ts'
import { securitySchemes } from '../src/http/openapi.ts'
import { loadKeyRing } from '../src/keys/key-ring.ts'
import { describeService } from '../src/service.ts'
import { keyPolicy } from '../src/settings/key-policy.ts'
import { loadConfig } from '../src/settings/load.ts'
import { openStore } from '../src/storage/open.ts'
import { systemClock, systemRandom } from '../src/system.ts'

const file = new URL('../openapi/openapi.json', import.meta.url)
const description = await describe()
if (process.argv.includes('--check')) {
  if (readFileSync(file, 'utf8') === description) process.exit(0)
  process.stderr.write('openapi/openapi.json differs from the routes: run npm run generate -- openapi\n')
  process.exit(1)
}
writeFileSync(file, description)
process.exit(0)

async function describe(): Promise<string> {
  const secret = 'only for writing the description down'
  const config = loadConfig({ mode: 'serve', flags: { secret, logLevel: 'silent' } })
  const store = await openStore('sqlite::memory:')
  const [clock, random] = [systemClock, systemRandom]
  const keys = await loadKeyRing({ store, secret, policy: keyPolicy(config), clock, random })
  const app = await buildApp(
    { config, store, keys, clock, random },
    {
      observe: async (observed) => {
        await observed.register(swagger, {
          openapi: {
            openapi: '3.1.0',
            info: {
              title: 'Lychgate',
              version: '1',
              description:
                'An API secured with OAuth 2.0 and OpenID Connect, and the authorization server that secures it.',
              license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
            },
            servers: [{ url: config.issuer }],
            security: [],
            tags: [
              { name: 'discovery', description: 'What a client learns without knowing anything.' },
              { name: 'registration', description: 'RFC 7591 and RFC 7592.' },
              { name: 'authorization', description: 'Where the user decides.' },
              { name: 'tokens', description: 'Exchange, refresh, revocation, introspection.' },
              { name: 'api', description: 'The protected resources.' },
            ],
            components: {
              securitySchemes: securitySchemes(describeService(config, declared.scopes)),
            },
          },
        })
      },
    },
  )
  await app.ready()
  const { components, ...described } = JSON.parse(JSON.stringify(app.swagger()))
  const schemas: Record<string, unknown> = {}
  const paths = name(withOperationIds(described.paths), schemas)
  return `${JSON.stringify({ ...described, components: { ...components, schemas }, paths }, null, 2)}\n`
}

/** A route of several methods cannot name each operation itself: `POST /api/courses` is post_courses. */
function withOperationIds(paths: Record<string, Record<string, object>>): unknown {
  const named = Object.entries(paths).map(([path, operations]) => {
    const area = path.slice(path.lastIndexOf('/') + 1)
    const each = Object.entries(operations).map(([method, operation]) => [
      method,
      { operationId: `${method}_${area}`, ...operation },
    ])
    return [path, Object.fromEntries(each)]
  })
  return Object.fromEntries(named)
}

/** Moves every schema that has a title to the components, so that each appears once. */
function name(value: unknown, schemas: Record<string, unknown>): unknown {
  if (Array.isArray(value)) return value.map((member) => name(member, schemas))
  if (typeof value !== 'object' || value === null) return value
  const named = Object.fromEntries(Object.entries(value).map(([key, member]) => [key, name(member, schemas)]))
  if (typeof named['title'] !== 'string' || !('type' in named)) return named
  const { title, ...schema } = named
  schemas[title as string] = schema
  return { $ref: `#/components/schemas/${title}` }
}
