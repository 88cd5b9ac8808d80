import { ask, endpoint, type Place, post, withToken } from './client.ts'
import type { Outcome, Run } from './run.ts'

/** The same step done wrong, or otherwise: to see what the server says, with nothing lost. */
export interface Variant {
  readonly id: string
  /** The label of its button. */
  readonly button: string
  /** Whether it says anything now. */
  readonly canTake: (run: Run) => boolean
  readonly take: (run: Run, place: Place) => Promise<Outcome>
}

/** By step. */
export const variants: Readonly<Record<string, readonly Variant[]>> = {
  exchange: [
    {
      id: 'other-verifier',
      button: 'As a thief, with another verifier',
      canTake: ({ callback }) => callback?.['code'] !== undefined,
      take: exchangeAsThief,
    },
  ],
  call: [
    {
      id: 'anonymous',
      button: 'Without a token',
      canTake: ({ tokens }) => tokens !== undefined,
      take: callAsNobody,
    },
    {
      id: 'beyond-scope',
      button: 'Beyond its scope',
      canTake: ({ tokens, scope, area }) => tokens !== undefined && !scope.includes(`${area}:write`),
      take: callBeyondScope,
    },
  ],
  refresh: [
    {
      id: 'used',
      button: 'With the refresh token it replaced',
      canTake: ({ replaced }) => replaced !== undefined,
      take: refreshAgain,
    },
  ],
}

/** RFC 7636 §1: the code alone is worth nothing, and the attempt leaves it as it was. */
async function exchangeAsThief(run: Run, place: Place): Promise<Outcome> {
  const fields = {
    grant_type: 'authorization_code',
    code: run.callback?.['code'] ?? '',
    redirect_uri: run.redirectUri,
    client_id: run.clientId ?? '',
    code_verifier: 'a-verifier-that-only-a-thief-would-make-up-0',
  }
  const call = await ask(run, place, post(endpoint(run, 'token_endpoint'), fields))
  const ok = call.status === 400
  return {
    ok,
    said: ok ? 'Rejected, and the code is what it was before.' : `${call.status}, not 400.`,
    calls: [call],
  }
}

/** A request without a token is not challenged but served as anonymous. */
async function callAsNobody(run: Run, place: Place): Promise<Outcome> {
  const call = await ask(run, place, { method: 'GET', url: `${place.issuer}/api/${run.area}` })
  const ok = call.status === 200
  return { ok, said: ok ? 'Served, as anonymous.' : `${call.status}, not 200.`, calls: [call] }
}

/** RFC 6750 §3.1: the challenge names the scope that is missing. */
async function callBeyondScope(run: Run, place: Place): Promise<Outcome> {
  const sending = { ...withToken(run, `${place.issuer}/api/${run.area}`), method: 'POST' } as const
  const call = await ask(run, place, sending)
  const ok = call.status === 403
  return { ok, said: ok ? 'Rejected: the token may only read.' : `${call.status}, not 403.`, calls: [call] }
}

/** RFC 9700 §4.14.2: a moment later it is a lost answer, after that it is a theft. */
async function refreshAgain(run: Run, place: Place): Promise<Outcome> {
  const fields = {
    grant_type: 'refresh_token',
    refresh_token: run.replaced ?? '',
    client_id: run.clientId ?? '',
  }
  const call = await ask(run, place, post(endpoint(run, 'token_endpoint'), fields))
  const said =
    call.status === 200
      ? 'So soon it is taken for a lost answer: the same successor again.'
      : 'Used twice, it may have been stolen: everything from this approval is dead now.'
  return { ok: call.status === 200 || call.status === 400, said, calls: [call] }
}
