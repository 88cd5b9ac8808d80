import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { insert } from '../../domain/decision.ts'
import type { Parameters } from '../../domain/parameters.ts'
import { secretBytes } from '../../domain/secret.ts'
import type { Needs } from '../../feature/deps.ts'
import { addressPrefix } from '../../http/address-prefix.ts'
import { clientOf } from '../../http/client-authentication.ts'
import { assertForm, formBodies, parametersOf } from '../../http/parameters.ts'
import { badBody, ErrorResponse } from '../../http/schema.ts'
import {
  asPushError,
  assertNoReference,
  assertPushed,
  assertUsable,
  endOf,
  extraOf,
  pushedRequestKind,
  pushRequest,
  referredId,
  withLoaded,
} from './rules.ts'

const PushedRequestResponse = Type.Object(
  {
    request_uri: Type.String({ description: 'The reference to send to the authorization endpoint.' }),
    expires_in: Type.Integer({ description: 'Seconds.' }),
  },
  { additionalProperties: false },
)

/**
 * RFC 9126 §2: the pushed authorization request endpoint. The client authenticates as at the token endpoint, the
 * request is validated as at the authorization endpoint, both here and when its reference is used (RFC 9126 §4): the
 * client may have changed in between.
 */
export const pushedRequests: FastifyPluginAsyncTypebox<
  Needs<'config' | 'store' | 'clock' | 'random' | 'declared'>
> = async (app, deps) => {
  const { config, store, clock, random, declared } = deps
  const { request_uri: _, ...pushedParameters } = declared.authorizationParameters
  const { seconds, required } = config.pushedRequests
  const isRequired = required === 'on'
  app.seams.metadata.add({ require_pushed_authorization_requests: isRequired })

  app.seams.requestLoaders.add((parameters) => {
    const id = referredId(parameters)
    return id === undefined ? undefined : loadPushed(id, parameters)
  })

  async function loadPushed(id: string, parameters: Parameters) {
    const pushed = await store.find(pushedRequestKind, id)
    assertUsable(pushed, parameters, clock())
    // RFC 9126 §4: other parameters that the browser sends with the reference do not count.
    return { parameters: pushed.parameters, extra: { ...pushed.extra, ...extraOf(pushed) } }
  }

  app.seams.requestChecks.add((client, extra) => assertPushed(client, extra, isRequired))
  app.seams.requestEnds.add((request) => endOf(request, config.lifetimes.interactionSeconds))

  await app.register(formBodies, { config })
  app.post(
    '/api/oauth/par',
    {
      config: { endpoint: 'pushed_authorization_request', limit: 'token' },
      schema: {
        operationId: 'pushAuthorizationRequest',
        tags: ['authorization'],
        summary: 'Push an authorization request, RFC 9126',
        consumes: ['application/x-www-form-urlencoded'],
        body: Type.Object({ ...pushedParameters, ...declared.authenticationParameters }),
        response: {
          201: PushedRequestResponse,
          ...badBody,
          401: ErrorResponse,
          429: ErrorResponse,
          503: ErrorResponse,
        },
      },
      preValidation: assertForm,
      preHandler: app.requireClient(undefined, undefined, 'push'),
    },
    async (request, reply) => {
      const parameters = parametersOf(request.body)
      assertNoReference(parameters)
      const client = clientOf(request)
      const { pushed, requestUri } = pushRequest(parameters, client, random(secretBytes), seconds, clock())
      const { load, proveRedirect, assert, parse } = app.authorizationRequests
      const proven = await app.seams.pushReaders.collect(request, reply)
      // RFC 9126 §3: what is pushed may be a request object.
      const { extra, ...rest } = await load(pushed.parameters, addressPrefix(request.ip))
      const loaded = { ...rest, extra: { ...extra, ...proven } }
      try {
        const redirect = proveRedirect(loaded, client)
        assert(client, { ...loaded, extra: { ...loaded.extra, ...extraOf(pushed) } })
        await parse(loaded, client, redirect)
      } catch (error) {
        throw asPushError(error)
      }
      await store.write(insert(pushedRequestKind, withLoaded(pushed, loaded)))
      return reply.code(201).send({ request_uri: requestUri, expires_in: seconds })
    },
  )
}
