/**
 * Writes openapi/openapi.json from the route schemas of the default configuration, and openapi/admin.json from those of
 * the admin API. `--check` compares instead and fails on a difference.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import swagger from '@fastify/swagger'
import { buildApp } from '../src/app/app.ts'
import { describeService } from '../src/feature/service.ts'
import { declared, features } from '../src/features.ts'
import { securitySchemes } from '../src/http/openapi.ts'
import { keyPolicy } from '../src/keys/key-policy.ts'
import { loadKeyRing } from '../src/keys/key-ring.ts'
import { loadConfig } from '../src/settings/load.ts'
import { openStore } from '../src/storage/open.ts'
import { systemClock, systemRandom } from '../src/system/system.ts'

/** The descriptions by their file: which part of the API they are about. */
const descriptions = {
  openapi: {
    title: 'Lychgate',
    description:
      'An API secured with OAuth 2.0 and OpenID Connect, and the authorization server that secures it.',
    tags: [
      { name: 'discovery', description: 'What a client learns without knowing anything.' },
      { name: 'registration', description: 'RFC 7591 and RFC 7592.' },
      { name: 'authorization', description: 'Where the user decides.' },
      { name: 'tokens', description: 'Exchange, refresh, revocation, introspection.' },
      { name: 'api', description: 'The protected resources.' },
    ],
    flags: {},
    below: '/',
  },
  admin: {
    title: 'Lychgate admin API',
    description: 'What an operator does with the command line, over HTTP.',
    tags: [{ name: 'admin', description: 'Users, groups, clients, keys and the audit log.' }],
    flags: { 'admin.api': 'on' },
    below: '/api/admin/v1/',
  },
} as const
type Name = keyof typeof descriptions

const hasAdmin = features.some(({ scopes = {} }) => 'admin:users:read' in scopes)
const names: readonly Name[] = hasAdmin ? ['openapi', 'admin'] : ['openapi']
let isOutdated = false
for (const name of names) {
  const file = new URL(`../openapi/${name}.json`, import.meta.url)
  const description = await describe(name)
  if (!process.argv.includes('--check')) writeFileSync(file, description)
  else if (readFileSync(file, 'utf8') !== description) {
    process.stderr.write(`openapi/${name}.json differs from the routes: run npm run generate -- openapi\n`)
    isOutdated = true
  }
}
process.exit(isOutdated ? 1 : 0)

async function describe(of: Name): Promise<string> {
  const { title, description, tags, flags, below } = descriptions[of]
  const secret = 'only for writing the description down'
  const config = loadConfig({ mode: 'serve', flags: { secret, logLevel: 'silent', ...flags } })
  const store = await openStore('sqlite::memory:')
  const schemes = securitySchemes(describeService(config, declared))
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
              title,
              version: '1',
              description,
              license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
            },
            servers: [{ url: config.issuer }],
            security: [],
            tags: [...tags],
            components: { securitySchemes: schemes },
          },
        })
      },
    },
  )
  await app.ready()
  const { components, ...described } = JSON.parse(JSON.stringify(app.swagger()))
  const schemas: Record<string, unknown> = {}
  if (of === 'admin') delete components.securitySchemes.registrationAccessToken
  const wanted = Object.entries<Record<string, object>>(described.paths).filter(([path]) =>
    path.startsWith(below),
  )
  const paths = name(withOperationIds(Object.fromEntries(wanted)), schemas)
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
