import type { FastifyError } from 'fastify'

/**
 * How values are compared with a schema. Coercion would turn "x" into ["x"] and 5 into "5", and accept what RFC 7591
 * wants rejected. And the schemas are TypeBox's: compiling the schema of schemas to check them is a tenth of a start.
 */
export const strictSchemas = {
  coerceTypes: false,
  removeAdditional: false,
  useDefaults: false,
  validateSchema: false,
} as const

/** What Fastify expects of a validator: a verdict, and its errors. */
export interface Validate {
  (value: unknown): unknown
  errors?: unknown
}

/**
 * Names what is wrong. A member that is not known is named, too: most are misspelt.
 * @param context What was compared: `body`, `querystring` or `headers`.
 */
export function malformed(validation: FastifyError['validation'], context = 'request'): string {
  const [fault] = validation ?? []
  const unknown = fault?.params?.['additionalProperty']
  if (typeof unknown === 'string' && /^\w{1,40}$/.test(unknown))
    return `${unknown} is not known in the ${context}`
  const path = fault?.instancePath.slice(1) || String(fault?.params?.['missingProperty'] ?? '')
  return `${/^[a-z_]{1,40}$/.test(path) ? path : `the ${context}`} is missing or malformed`
}
