// Brings the OpenAPI members of route schemas (operationId, tags, summary, …) into Fastify's types.
import type {} from '@fastify/swagger'
import { Type } from '@sinclair/typebox'

/** RFC 6749 §5.2, the form of every error answer. */
export const ErrorResponse = Type.Object(
  {
    error: Type.String({ description: 'A registered error code.' }),
    error_description: Type.String({ description: 'What is wrong, for a developer.' }),
  },
  { title: 'Error', description: 'A refusal, RFC 6749 §5.2.', additionalProperties: false },
)
