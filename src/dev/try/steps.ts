import { type Clause, clauseOf } from '../../audit/clause-of-rule.ts'
import {
  callApi,
  comeBack,
  discover,
  exchange,
  identify,
  introspect,
  type Place,
  prepare,
  refresh,
  register,
  revoke,
  userInfo,
} from './client.ts'
import type { Outcome, Run } from './run.ts'

/** A step of the client, with what a reader should know about it. */
export interface TryStep {
  readonly id: string
  readonly title: string
  readonly explanation: string
  readonly clauses: readonly Clause[]
  /** The label of its button; absent where the browser does it. */
  readonly button?: string
  readonly take: (run: Run, place: Place) => Promise<Outcome>
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
    take: userInfo,
  },
  {
    id: 'call',
    title: 'Call the API',
    explanation: 'The access token in the Authorization header, and nowhere else.',
    clauses: clauses('rfc6750-2.1'),
    button: 'Call the API',
    take: (run, place) => callApi(run, place, 200),
  },
  {
    id: 'introspect',
    title: 'Introspect',
    explanation:
      'What the server knows of the token: what an API asks that cannot tell by itself. A client may ask about its own.',
    clauses: clauses('rfc7662-2.1', 'rfc7662-2.2'),
    button: 'Introspect the access token',
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
  },
  {
    id: 'revoke',
    title: 'Revoke',
    explanation:
      'Signing out of the app: revoking the refresh token ends the whole approval, every access token included.',
    clauses: clauses('rfc7009-2.1'),
    button: 'Revoke the refresh token',
    take: revoke,
  },
  {
    id: 'call-again',
    title: 'Call the API again',
    explanation:
      'The same access token, a moment later: 401, with a challenge that says where to learn how to get another one. Why exactly, only the server knows, and says here.',
    clauses: clauses('rfc6750-3', 'rfc6750-3.1', 'rfc9728-5.1'),
    button: 'Call the API with the dead token',
    take: (run, place) => callApi(run, place, 401),
  },
]
