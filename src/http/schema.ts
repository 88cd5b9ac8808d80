// Brings the OpenAPI members of route schemas (operationId, tags, summary, …) into Fastify's types.
import type {} from '@fastify/swagger'
import { Type } from '@sinclair/typebox'

/** The form of every error response, RFC 6749 §5.2. */
export const ErrorResponse = Type.Object(
  {
    error: Type.String({ description: 'A registered error code.' }),
    error_description: Type.String({ description: 'What is wrong, for a developer.' }),
  },
  { title: 'Error', description: 'An error, RFC 6749 §5.2.', additionalProperties: false },
)

/** Responses of an endpoint to a body that it cannot read. */
export const badBody = { 400: ErrorResponse, 413: ErrorResponse, 415: ErrorResponse }

const page = (description: string) => ({
  description,
  content: { 'text/html': { schema: Type.String() } },
})

/** Responses of an endpoint for users. */
export const pageResponses = {
  200: page('A page that posts the response to the redirect URI: response_mode form_post.'),
  400: page('The client or its redirect URI is not proven.'),
  429: page('Too many requests from this network.'),
  503: page('The storage cannot be reached now.'),
}

/** As `badBody`, for users. */
export const badFormPages = { 413: page('The form is too large.'), 415: page('The body is no form.') }
