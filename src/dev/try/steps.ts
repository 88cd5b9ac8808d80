import { type Clause, clauseOf } from '../../observability/clause-of-rule.ts'
import {
  apiRequest,
  comeBack,
  discover,
  exchange,
  expectStatus,
  identify,
  introspect,
  prepare,
  redeem,
  refresh,
  refreshWith,
  register,
  revoke,
  userInfo,
} from './client.ts'
import { attempt, type Run, type Take } from './run.ts'

/** A step of the client, with its explanation. */
export interface TryStep {
  readonly id: string
  readonly title: string
  readonly explanation: string
  readonly clauses: readonly Clause[]
  /** The label of its button; absent if the browser takes the step. */
  readonly button?: string
  /** The endpoint it needs; a server without it has no such step. */
  readonly needs?: string
  readonly take: Take
  readonly variants?: readonly Variant[]
}

/** The step done wrongly or differently, to see how the server responds. The run can continue. */
export interface Variant {
  readonly id: string
  /** The label of its button. */
  readonly button: string
  /** Whether the run has what it needs. */
  readonly canTake: (run: Run) => boolean
  readonly take: Take
}

const clauses = (...rules: readonly string[]) => rules.map((rule) => clauseOf(`${rule}-`))

/** The whole flow, in order. */
export const trySteps: readonly TryStep[] = [
  {
    id: 'discover',
    title: 'Discover',
    explanation:
      'The client knows only the issuer. The metadata has everything else. Its issuer must be identical to the requested one, character by character.',
    clauses: clauses('rfc8414-3', 'rfc8414-3.3'),
    button: 'Fetch the metadata',
    take: discover,
  },
  {
    id: 'register',
    title: 'Register',
    explanation:
      'A native app registers itself and gets a client_id. It has no secret, and its redirect URI is on this computer.',
    clauses: clauses('rfc7591-3.1', 'rfc8252-7.3', 'rfc8252-8.4'),
    button: 'Register this client',
    take: register,
  },
  {
    id: 'prepare',
    title: 'Make the PKCE pair',
    explanation:
      'The verifier is 32 random bytes and stays in the client. Its SHA-256 hash is the challenge and goes through the browser. A thief of the code has only the challenge, and cannot compute the verifier.',
    clauses: clauses('rfc7636-4.1', 'rfc7636-4.2', 'rfc6749-10.12'),
    button: 'Make verifier, challenge, state and nonce',
    take: prepare,
  },
  {
    id: 'authorize',
    title: 'Send the user to the server',
    explanation:
      'The client opens the browser at the authorization endpoint and waits. The user signs in and decides. Then the server redirects the browser to the redirect URI with a code, the state and the issuer. The client compares state and issuer before it uses the code.',
    clauses: clauses('rfc6749-4.1.1', 'rfc7636-4.3', 'rfc6749-4.1.2', 'rfc9207-2.4'),
    take: comeBack,
  },
  {
    id: 'exchange',
    title: 'Exchange the code',
    explanation:
      'The code works once, within a minute, for this client, with the same redirect URI and the verifier. The server hashes the verifier and compares the result with the challenge.',
    clauses: clauses('rfc6749-4.1.3', 'rfc7636-4.5', 'rfc7636-4.6'),
    button: 'Exchange the code for tokens',
    take: exchange,
    variants: [
      {
        id: 'other-verifier',
        button: 'As a thief, with another verifier',
        canTake: ({ validated }) => validated !== undefined,
        take: expectStatus(400, 'Rejected. The code is still valid.', (attempt) =>
          redeem(attempt, 'a-verifier-that-only-a-thief-would-make-up-0'),
        ),
      },
    ],
  },
  {
    id: 'identify',
    title: 'Check the ID Token',
    explanation:
      'The ID Token identifies the user who signed in. The client may use it only after it has checked the signature, with the keys the server publishes, and each of these claims.',
    clauses: clauses('oidc-core-3.1.3.7', 'oidc-core-3.1.3.6'),
    button: 'Fetch the keys and check',
    take: identify,
  },
  {
    id: 'userinfo',
    title: 'Call UserInfo',
    explanation:
      'Returns the claims about the user that the granted scope allows. Its sub must be that of the ID Token.',
    clauses: clauses('oidc-core-5.3', 'oidc-core-5.3.2'),
    button: 'Call UserInfo',
    needs: 'userinfo',
    take: userInfo,
  },
  {
    id: 'call',
    title: 'Call the API',
    explanation: 'The client sends the access token in the Authorization header, and nowhere else.',
    clauses: clauses('rfc6750-2.1'),
    button: 'Call the API',
    take: expectStatus(200, '200, as expected.', (attempt) => apiRequest(attempt, 'GET')),
    variants: [
      {
        id: 'anonymous',
        button: 'Without a token',
        canTake: ({ tokens }) => tokens !== undefined,
        take: expectStatus(200, 'Served as anonymous.', ({ run, place, fetch }) =>
          fetch(`${place.issuer}/api/${run.area}`, { method: 'GET' }),
        ),
      },
      {
        id: 'beyond-scope',
        button: 'Beyond its scope',
        canTake: ({ tokens, scope, area }) => tokens !== undefined && !scope.includes(`${area}:write`),
        take: expectStatus(403, 'Rejected: the token may only read.', (attempt) =>
          apiRequest(attempt, 'POST'),
        ),
      },
    ],
  },
  {
    id: 'introspect',
    title: 'Introspect',
    explanation:
      'Returns what the server knows about the token. An API asks this if it cannot verify tokens itself. A client may ask about its own tokens.',
    clauses: clauses('rfc7662-2.1', 'rfc7662-2.2'),
    button: 'Introspect the access token',
    needs: 'introspection',
    take: introspect,
  },
  {
    id: 'refresh',
    title: 'Refresh',
    explanation:
      'Returns a new access token without the user, and a new refresh token. The old refresh token is invalid from now on, so the client stores the new one before it does anything else.',
    clauses: clauses('rfc6749-6', 'rfc9700-4.14.2'),
    button: 'Refresh',
    take: refresh,
    variants: [
      {
        id: 'used',
        button: 'With the refresh token it replaced',
        canTake: ({ replaced }) => replaced !== undefined,
        take: refreshAgain(),
      },
    ],
  },
  {
    id: 'revoke',
    title: 'Revoke',
    explanation:
      'The user signs out of the app. Revoking the refresh token revokes the whole grant, including every access token.',
    clauses: clauses('rfc7009-2.1'),
    button: 'Revoke the refresh token',
    needs: 'revocation',
    take: revoke,
  },
  {
    id: 'call-again',
    title: 'Call the API again',
    explanation:
      'The same access token again: 401, with a challenge that names the metadata from which to get another one. The response does not say why; the checks of the server are below.',
    clauses: clauses('rfc6750-3', 'rfc6750-3.1', 'rfc9728-5.1'),
    button: 'Call the API with the revoked token',
    needs: 'revocation',
    take: expectStatus(401, '401, as expected.', (attempt) => apiRequest(attempt, 'GET')),
  },
]

/** RFC 9700 §4.14.2: shortly after the first use it is a retry, later a theft. */
function refreshAgain(): Take {
  return attempt('', async (attempt) => {
    const status = await attempt.statusOf(refreshWith(attempt, attempt.run.replaced))
    const said =
      status === 200
        ? 'So soon it counts as a retry after a lost response: the same new tokens again.'
        : 'It was used twice and may have been stolen, so the whole grant is revoked.'
    return { ok: status === 200 || status === 400, said }
  })
}
