import { type Clause, clauseOf } from '../../audit/clause-of-rule.ts'
import { attempt, type Take } from './attempt.ts'
import {
  apiRequest,
  callApi,
  comeBack,
  discover,
  exchange,
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
import type { Run } from './run.ts'

/** A step of the client, with what a reader should know about it. */
export interface TryStep {
  readonly id: string
  readonly title: string
  readonly explanation: string
  readonly clauses: readonly Clause[]
  /** The label of its button; absent where the browser does it. */
  readonly button?: string
  /** The endpoint it needs; a server without it has no such step. */
  readonly needs?: string
  readonly take: Take
  readonly variants?: readonly Variant[]
}

/** The same step done wrong or differently, to see how the server responds; nothing is lost by it. */
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
      'The client knows one thing: the issuer. Everything else stands in the metadata. Its issuer must be the one that was asked for, to the character.',
    clauses: clauses('rfc8414-3', 'rfc8414-3.3'),
    button: 'Fetch the metadata',
    take: discover,
  },
  {
    id: 'register',
    title: 'Register',
    explanation:
      'A program on a computer registers itself and gets a client_id. It keeps no secret, and its redirect URI is on this very computer.',
    clauses: clauses('rfc7591-3.1', 'rfc8252-7.3', 'rfc8252-8.4'),
    button: 'Register this client',
    take: register,
  },
  {
    id: 'prepare',
    title: 'Make the PKCE pair',
    explanation:
      'The verifier is 32 random bytes and stays here. Its SHA-256 is the challenge and goes through the browser. Whoever steals the code later has only the challenge, and cannot compute back.',
    clauses: clauses('rfc7636-4.1', 'rfc7636-4.2', 'rfc6749-10.12'),
    button: 'Make verifier, challenge, state and nonce',
    take: prepare,
  },
  {
    id: 'authorize',
    title: 'Send the person to the server',
    explanation:
      'The client opens the browser at the authorization endpoint and waits. The person signs in and decides; the browser comes back to the redirect URI with a code, the state and the issuer. The client compares both before it looks at the code.',
    clauses: clauses('rfc6749-4.1.1', 'rfc7636-4.3', 'rfc6749-4.1.2', 'rfc9207-2.4'),
    take: comeBack,
  },
  {
    id: 'exchange',
    title: 'Exchange the code',
    explanation:
      'The code works once, within a minute, for this client, with the same redirect URI and the verifier. The server hashes the verifier and compares.',
    clauses: clauses('rfc6749-4.1.3', 'rfc7636-4.5', 'rfc7636-4.6'),
    button: 'Exchange the code for tokens',
    take: exchange,
    variants: [
      {
        id: 'other-verifier',
        button: 'As a thief, with another verifier',
        canTake: ({ validated }) => validated !== undefined,
        take: exchangeAsThief(),
      },
    ],
  },
  {
    id: 'identify',
    title: 'Check the ID Token',
    explanation:
      'The ID Token says who signed in. It counts only after the signature and each of these claims were checked, with the keys the server publishes.',
    clauses: clauses('oidc-core-3.1.3.7', 'oidc-core-3.1.3.6'),
    button: 'Fetch the keys and check',
    take: identify,
  },
  {
    id: 'userinfo',
    title: 'Call UserInfo',
    explanation:
      'More about the person, by the access token, as far as the granted scope goes. Its sub must be that of the ID Token.',
    clauses: clauses('oidc-core-5.3', 'oidc-core-5.3.2'),
    button: 'Call UserInfo',
    needs: 'userinfo',
    take: userInfo,
  },
  {
    id: 'call',
    title: 'Call the API',
    explanation: 'The access token in the Authorization header, and nowhere else.',
    clauses: clauses('rfc6750-2.1'),
    button: 'Call the API',
    take: callApi(200),
    variants: [
      {
        id: 'anonymous',
        button: 'Without a token',
        canTake: ({ tokens }) => tokens !== undefined,
        take: callAnonymously(),
      },
      {
        id: 'beyond-scope',
        button: 'Beyond its scope',
        canTake: ({ tokens, scope, area }) => tokens !== undefined && !scope.includes(`${area}:write`),
        take: callBeyondScope(),
      },
    ],
  },
  {
    id: 'introspect',
    title: 'Introspect',
    explanation:
      'What the server knows of the token: what an API asks that cannot tell by itself. A client may ask about its own.',
    clauses: clauses('rfc7662-2.1', 'rfc7662-2.2'),
    button: 'Introspect the access token',
    needs: 'introspection',
    take: introspect,
  },
  {
    id: 'refresh',
    title: 'Refresh',
    explanation:
      'Without the person: a new access token, and a new refresh token in place of the old one, which is dead from now on. A client keeps the new one before it does anything else.',
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
      'Signing out of the app: revoking the refresh token ends the whole approval, every access token included.',
    clauses: clauses('rfc7009-2.1'),
    button: 'Revoke the refresh token',
    needs: 'revocation',
    take: revoke,
  },
  {
    id: 'call-again',
    title: 'Call the API again',
    explanation:
      'The same access token, a moment later: 401, with a challenge that says where to learn how to get another one. Why exactly, only the server knows, and says here.',
    clauses: clauses('rfc6750-3', 'rfc6750-3.1', 'rfc9728-5.1'),
    button: 'Call the API with the dead token',
    needs: 'revocation',
    take: callApi(401),
  },
]

/** RFC 7636 §1: the code alone is worth nothing, and the attempt does not use it up. */
function exchangeAsThief(): Take {
  return attempt('', async (attempt) => {
    const status = await attempt.statusOf(redeem(attempt, 'a-verifier-that-only-a-thief-would-make-up-0'))
    const ok = status === 400
    return { ok, said: ok ? 'Rejected, and the code is what it was before.' : `${status}, not 400.` }
  })
}

/** A request without a token is not challenged but served as anonymous. */
function callAnonymously(): Take {
  return attempt('', async ({ run, place, fetch, statusOf }) => {
    const status = await statusOf(fetch(`${place.issuer}/api/${run.area}`, { method: 'GET' }))
    const ok = status === 200
    return { ok, said: ok ? 'Served, as anonymous.' : `${status}, not 200.` }
  })
}

/** RFC 6750 §3.1: the challenge names the missing scope. */
function callBeyondScope(): Take {
  return attempt('', async (attempt) => {
    const status = await attempt.statusOf(apiRequest(attempt, 'POST'))
    const ok = status === 403
    return { ok, said: ok ? 'Rejected: the token may only read.' : `${status}, not 403.` }
  })
}

/** RFC 9700 §4.14.2: shortly after the first use it is a retry, later a theft. */
function refreshAgain(): Take {
  return attempt('', async (attempt) => {
    const status = await attempt.statusOf(refreshWith(attempt, attempt.run.replaced))
    const said =
      status === 200
        ? 'So soon it is taken for a lost answer: the same successor again.'
        : 'Used twice, it may have been stolen: everything from this approval is dead now.'
    return { ok: status === 200 || status === 400, said }
  })
}
