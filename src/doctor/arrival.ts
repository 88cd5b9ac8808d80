import type { IncomingMessage } from 'node:http'
import fp from 'fastify-plugin'
import type { Seconds } from '../domain/model.ts'
import { isSameText } from '../domain/secret.ts'
import type { Needs } from '../feature/deps.ts'
import { nothingHere } from '../http/errors.ts'
import type { KeyRing } from '../keys/key-ring.ts'
import { deriveSealingKey, pseudonymsBy } from '../keys/seal.ts'
import { addressesIn } from '../outbound/public-address.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Returns how a request arrived. */
    readonly arrivalOf: (request: Arriving) => Arrival
  }
}

/** A request, before or after it was routed. */
export type Arriving = Pick<IncomingMessage, 'headers' | 'socket'>

/** How a request arrived at the server. */
export interface Arrival {
  /** The address that connected. */
  readonly peer: string
  readonly isForwarded: boolean
  /** Whether `trustProxy` has the peer. */
  readonly isTrusted: boolean
}

/** Where `lychgate doctor` asks how its request arrived, below the issuer. */
export const arrivalPath = '/oauth/arrival'
/** The header in which it proves that it has the secret of the server. */
export const proofHeader = 'x-lychgate-doctor'
const proofSeconds: Seconds = 60

/** Returns the proof of who has the secret of the server. It is valid for a minute. */
export async function proofBy(secret: string, at: Seconds): Promise<string> {
  const sealingKey = await deriveSealingKey(secret)
  return proofAt(
    at,
    pseudonymsBy(() => sealingKey),
  )
}

/** The same, for who has its keys. */
export function proofAt(at: Seconds, pseudonym: KeyRing['pseudonym']): string {
  return `${at}.${pseudonym('doctor', `${at}`)}`
}

/** Tells who has the secret of the server how a request arrived: what a proxy sends is seen by the server alone. */
export const arrival = fp<Needs<'config' | 'keys' | 'clock' | 'service'>>(
  async (app, { config, keys, clock, service }) => {
    const isTrusted = addressesIn(config.trustProxy)
    app.decorate('arrivalOf', ({ headers, socket: { remoteAddress: peer = '' } }: Arriving) => ({
      peer,
      isForwarded: headers['x-forwarded-for'] !== undefined,
      isTrusted: isTrusted(peer),
    }))
    app.get(service.prefix + arrivalPath, { schema: { hide: true } }, async (request) => {
      if (!isProof(request.headers[proofHeader], keys, clock())) throw nothingHere()
      const { ip: client, headers } = request
      return { ...app.arrivalOf(request), client, forwarded: headers['x-forwarded-for'] }
    })
  },
  { name: 'arrival' },
)

function isProof(text: unknown, { pseudonym }: KeyRing, now: Seconds): boolean {
  if (typeof text !== 'string') return false
  const at = Number.parseInt(text, 10)
  return Math.abs(now - at) <= proofSeconds && isSameText(text, proofAt(at, pseudonym))
}
