import type { FastifyRequest } from 'fastify'
import { isObject } from '../domain/is-object.ts'
import type { ClientProbe } from '../feature/feature.ts'
import { signedInCookie } from './cookies.ts'
import { headerNames, type IdentityHeaders, noIdentity } from './identity.ts'
import { probePath, protectedHostOf } from './rules.ts'

/*
 * Whether a proxy treats requests as docs/forward-auth.md says. `lychgate doctor` sends one that has everything forged,
 * which the proxy asks about and routes to this server in place of the app.
 */

const mark = 'probe'

/** Every spelling that an app, or a gateway in front of it, may take for one of the headers. */
const spellings = headerNames.flatMap((name) => [
  name,
  name.replaceAll('-', '_'),
  name.replace('-', '_'),
  name.replace(/-(?!.*-)/, '_'),
])

/** The request of the doctor, and what it finds. */
export const clientProbe: ClientProbe = {
  requestOf(client) {
    const host = protectedHostOf(client)?.host
    if (host === undefined) return undefined
    const forged = Object.fromEntries(spellings.map((name) => [name, 'forged']))
    const forwarded = { host: 'forged.invalid', method: 'OPTIONS', uri: '/forged' }
    return {
      url: `https://${host}${probePath}`,
      headers: {
        ...forged,
        ...Object.fromEntries(Object.entries(forwarded).map(([name, text]) => [`x-forwarded-${name}`, text])),
        cookie: `${signedInCookie}=forged`,
        accept: 'application/json',
      },
    }
  },
  faultOf(json) {
    if (!isObject(json) || !Array.isArray(json['forged']))
      return {
        said: 'the proxy does not send the probe here as it sends requests to the app',
        found: 'an error',
      }
    const forged = json['forged'].map(String).slice(0, spellings.length)
    if (forged.length > 0)
      return { said: 'headers that a client forges reach the app', found: forged.join(', ') }
    if (json['asked'] === true) return undefined
    return { said: 'the proxy does not take the headers of this server', found: 'none of them' }
  },
  change: 'configure the proxy as in docs/forward-auth.md',
}

/** The headers for a request of the doctor. An assertion that is no JWT shows that they were taken. */
export const probeIdentity: IdentityHeaders = { ...noIdentity, 'x-lychgate-assertion': mark }

/** What arrived of a request of the doctor. */
export interface ProbeResult {
  /** Whether the proxy asked, and took the headers. */
  readonly asked: boolean
  /** The names of headers with a value that is not of this server. */
  readonly forged: readonly string[]
}

/** Returns what an app would have got. It has names of headers alone, so anyone may see it. */
export function probeResult({ headers }: Pick<FastifyRequest, 'headers'>): ProbeResult {
  const forged = Object.entries(headers).filter(([name, value]) => {
    if (name === 'cookie') return String(value).includes(signedInCookie)
    const isOurs = headerNames.some((header) => header === name.replaceAll('_', '-'))
    return isOurs && value !== '' && !(name === 'x-lychgate-assertion' && value === mark)
  })
  return { asked: headers['x-lychgate-assertion'] === mark, forged: forged.map(([name]) => name) }
}
