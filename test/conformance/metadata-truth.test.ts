/**
 * Uses everything that the metadata documents advertise, and one thing of each kind that they do not. An entry that no
 * test here can use fails, so that each has its proof.
 */
import t from 'tap'
import { freePort } from '../helpers/free-port.ts'
import { json } from '../helpers/wire.ts'
import { boundTokenPromises } from './metadata-truth/bound-tokens.ts'
import { choicePromises } from './metadata-truth/choices.ts'
import { clientDocumentPromises } from './metadata-truth/client-documents.ts'
import { devicePromises } from './metadata-truth/devices.ts'
import { assertNoOtherEndpoint, endpointPromises } from './metadata-truth/endpoints.ts'
import { keep, unproven } from './metadata-truth/promise.ts'
import { pushedRequestPromises } from './metadata-truth/pushed-requests.ts'
import { requestObjectPromises } from './metadata-truth/request-objects.ts'
import { protectedResources, resourcePromises } from './metadata-truth/resource.ts'
import { signOutPromises } from './metadata-truth/sign-out.ts'
import { openSubject } from './metadata-truth/subject.ts'
import { userPromises } from './metadata-truth/users.ts'

const promises = {
  ...endpointPromises,
  ...pushedRequestPromises,
  ...clientDocumentPromises,
  ...requestObjectPromises,
  ...boundTokenPromises,
  ...devicePromises,
  ...choicePromises,
  ...userPromises,
  ...signOutPromises,
  protected_resources: protectedResources,
}

const scenes = await Promise.all(
  ['', '/t'].map(async (issuerPath) => {
    const port = await freePort()
    const lessons = `http://localhost:${port}/lessons`
    const rest = { scopes: ['courses:read'], name: 'Lessons' }
    const options = {
      port,
      issuerPath,
      service: {
        name: 'School',
        documentation: 'https://docs.example/',
        policy: 'https://school.example/policy',
        terms: 'https://school.example/terms',
      },
      resources: [
        { identifier: lessons, tokenFormat: 'opaque' as const, ...rest },
        { identifier: 'https://library.example/api', tokenFormat: 'jwt' as const, ...rest },
      ],
    }
    const place = (issuer: string) =>
      issuerPath === ''
        ? `${issuer}/.well-known/oauth-authorization-server`
        : `${new URL(issuer).origin}/.well-known/openid-configuration${issuerPath}`
    return { issuerPath, subject: await openSubject(t, place, options) }
  }),
)

for (const { issuerPath, subject } of scenes) {
  const { server, document } = subject
  const at = (name: string) => fetch(`${server.origin}/.well-known/${name}${issuerPath}`)

  t.test(
    `[rfc9068-4-consistent-metadata] both documents of an issuer at '${issuerPath}/' agree`,
    async (t) => {
      for (const name of ['oauth-authorization-server', 'openid-configuration']) {
        t.strictSame(await json(await at(name)), document, name)
      }
    },
  )

  t.test(
    `[service-4-asm-complete] [rfc8414-2-auth-methods-default] [rfc8414-2-revocation-endpoint] [rfc8414-2-introspection-endpoint] everything that the metadata of an issuer at '${issuerPath}/' advertises works`,
    async (t) => {
      await keep(t, subject, document, promises)
      await assertNoOtherEndpoint(t, subject)
    },
  )

  t.test(
    `[rfc9728-2-authorization-servers] [rfc9728-2-scopes-supported] [rfc9728-2-bearer-methods] everything that the metadata of the API advertises works, issuer at '${issuerPath}/'`,
    async (t) => {
      await keep(t, subject, await json(await at('oauth-protected-resource')), resourcePromises)
    },
  )
}

t.test('an advertised value that no test here can use is reported', async (t) => {
  const more = {
    ...scenes[0]?.subject.document,
    backchannel_authentication_endpoint: 'https://id.example/ciba',
    grant_types_supported: ['authorization_code', 'password'],
    require_signed_request_object: true,
    claims_supported: ['sub', 'toString'],
  }
  t.strictSame(unproven(more, promises).toSorted(), [
    'backchannel_authentication_endpoint',
    'claims_supported: toString',
    'grant_types_supported: password',
    'require_signed_request_object: true',
  ])
})
