import fp from 'fastify-plugin'
import { OAuthError } from '../domain/errors.ts'
import { httpFault } from './malformed-http.ts'

/** Rejects a request with a wrong Host header, RFC 9112 §3.2, or a foreign expectation, in the form of every error. */
export const wellFormedHttp = fp(
  async (app) => {
    // Without a listener Node answers 417 itself, with nothing in it.
    app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
    app.addHook('onRequest', (request, _reply, done) => {
      const fault = httpFault(request.raw)
      if (fault === undefined) return done()
      const { status, description, rule } = fault
      done(new OAuthError('invalid_request', description, { rule, status }))
    })
  },
  { name: 'well-formed-http', dependencies: ['error-mapper'] },
)
