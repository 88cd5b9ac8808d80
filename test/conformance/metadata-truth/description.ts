import Fastify from 'fastify'
import type { Test } from 'tap'
import { type Json, json } from '../../helpers/wire.ts'

interface Operation {
  readonly operationId: string
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { schema: object }>> }>
  >
}

/** One operation of an API description, and its path. */
export interface Described extends Operation {
  readonly method: string
  readonly path: string
}

/** A served OpenAPI description that checks responses. */
export interface Description {
  readonly operations: ReadonlyMap<string, Described>
  /** Calls an operation; a response that is not in the description fails. */
  call(t: Test, operationId: string, init?: Call): Promise<Response>
  /** The statuses that each operation has returned. */
  readonly seen: ReadonlyMap<string, ReadonlySet<number>>
}

export interface Call extends RequestInit {
  readonly parameters?: Readonly<Record<string, string>>
  readonly query?: URLSearchParams | string
}

/** Reads the description at this URL. */
export async function readDescription(url: string): Promise<Description> {
  const document = await json(await fetch(url))
  const paths = document['paths'] as Record<string, Record<string, Operation>>
  const [{ url: server } = { url: '' }] = document['servers'] as { url: string }[]
  const found = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): [string, Described] => {
      return [operation.operationId, { ...operation, method: method.toUpperCase(), path }]
    }),
  )
  const operations = new Map(found)
  if (operations.size !== found.length) throw new Error('two operations have one operationId')
  const validate = await schemaCheck(document)
  const seen = new Map<string, Set<number>>()

  async function call(t: Test, operationId: string, { parameters = {}, query = '', ...init }: Call = {}) {
    const operation = operations.get(operationId)
    if (operation === undefined) throw new Error(`${operationId} is not described`)
    const path = operation.path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => parameters[name] ?? '')
    const search = String(query) === '' ? '' : `?${query}`
    const response = await fetch(server + path + search, {
      redirect: 'manual',
      ...init,
      method: operation.method,
    })
    seen.set(operationId, new Set([...(seen.get(operationId) ?? []), response.status]))
    await judge(t, operation, response.clone())
    return response
  }

  async function judge(t: Test, { operationId, responses }: Described, response: Response): Promise<void> {
    const about = `${operationId} ${response.status}`
    const described = responses[response.status]
    if (described === undefined) return void t.fail(`${about} is not described`)
    const text = await response.text()
    const [type = ''] = (response.headers.get('content-type') ?? '').split(';')
    if (described.content === undefined) return void t.equal(text, '', `${about} has no body`)
    const schema = described.content[type]?.schema
    if (schema === undefined) return void t.fail(`${about} is ${type}, which is not described`)
    t.strictSame(validate(schema, type === 'application/json' ? JSON.parse(text) : text), [], about)
  }

  return { operations, call, seen }
}

/** What is wrong with a value, by the validator of Fastify: nothing is coerced, filled in or removed. */
async function schemaCheck(document: Json) {
  const app = Fastify({
    ajv: {
      customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false, allErrors: true },
    },
  })
  // The compiler exists once a route has a schema.
  app.get('/', { schema: { querystring: { type: 'object' } } }, async () => '')
  await app.ready()
  const { validatorCompiler } = app
  if (validatorCompiler === undefined) throw new Error('Fastify has no validator')
  const { schemas } = document['components'] as { schemas: Json }
  const definitions = JSON.stringify(schemas)
  const compiled = new Map<string, ReturnType<typeof validatorCompiler>>()
  return (schema: object, value: unknown): readonly unknown[] => {
    const text = JSON.stringify(schema)
    const whole = `${text.slice(0, -1)},"$defs":${definitions}}`.replaceAll(
      '#/components/schemas/',
      '#/$defs/',
    )
    const check =
      compiled.get(text) ?? validatorCompiler({ schema: JSON.parse(whole), method: 'GET', url: '/' })
    compiled.set(text, check)
    return check(value) === true ? [] : (check.errors ?? ['it is something else'])
  }
}
