import {
  type Serializer,
  type SerializerFactory,
  SerializerSelector,
} from '@fastify/fast-json-stringify-compiler'

/**
 * Turns a response schema into code when the first such answer is sent, not at start: most of them describe refusals
 * that hardly ever happen, and all of them together took half of the time until the server was ready.
 */
export const serializersOnDemand: SerializerFactory = (schemas, options) => {
  const compile = SerializerSelector()(schemas, options)
  return (route) => {
    let serialize: Serializer | undefined
    return (value) => {
      serialize ??= compile(route)
      return serialize(value)
    }
  }
}
