import AjvCompiler, { type ValidatorFactory } from '@fastify/ajv-compiler'
import {
  type Serializer,
  type SerializerFactory,
  SerializerSelector,
} from '@fastify/fast-json-stringify-compiler'

/**
 * Turns a response schema into code when the first such answer is sent, not at start: most of them describe rejections
 * that hardly ever happen, and all of them together took half of the time until the server was ready.
 */
export const serializersOnDemand: SerializerFactory = (schemas, options) => {
  let compile: ReturnType<SerializerFactory> | undefined
  return (route) => {
    let serialize: Serializer | undefined
    return (value) => {
      compile ??= SerializerSelector()(schemas, options)
      serialize ??= compile(route)
      return serialize(value)
    }
  }
}

/** What Fastify asks of a validator: a verdict, and what is wrong beside it. */
interface Validate {
  (value: unknown): unknown
  errors?: unknown
}

/** The same for the schema of a request: a server has a hundred routes, and most of them wait for their first caller. */
export const validatorsOnDemand = ((...sources: Parameters<ReturnType<typeof AjvCompiler>>) => {
  let compile: ((route: unknown) => Validate) | undefined
  return (route: unknown): Validate => {
    let compiled: Validate | undefined
    const validate: Validate = (value) => {
      compile ??= AjvCompiler()(...sources) as (route: unknown) => Validate // one of two kinds, alike in this
      compiled ??= compile(route)
      const verdict = compiled(value)
      validate.errors = compiled.errors
      return verdict
    }
    return validate
  }
}) as unknown as ValidatorFactory // its type promises members of Ajv's functions that Fastify does not read
