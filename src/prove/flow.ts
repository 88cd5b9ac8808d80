import type { Browser, Decision, Ended } from './browser.ts'
import type { AuthMethod, Client, Clients } from './clients.ts'
import type { Seen } from './observation.ts'
import type { Params } from './params.ts'
import type { Recording } from './presets.ts'
import type { Server } from './server.ts'
import type { Change, ClientKey } from './tokens.ts'
import type { Wire } from './wire.ts'

/** How the clients of a profile behave: FAPI 2.0 clients push, and bind tokens to a key. */
export interface Traits {
  readonly methods: readonly AuthMethod[]
  readonly pushes: boolean
  readonly dpop: boolean
  /** FAPI 2.0 Message Signing: requests are signed, and so are responses where the server can. */
  readonly signs: boolean
}

/** An authorization code, and what its request was. */
export interface Code {
  readonly code: string
  readonly client: Client
  readonly verifier: string
  readonly params: Params
  readonly ended: Ended
}

/** The tokens of a code that was exchanged. */
export interface Grant extends Code {
  readonly seen: Seen
  readonly members: Readonly<Record<string, unknown>>
  readonly accessToken: string
  readonly refreshToken: string | undefined
  readonly idToken: string | undefined
}

export interface AuthorizeOptions {
  readonly client?: Client
  readonly browser?: Browser
  readonly decision?: Decision
  readonly stopsAtPage?: boolean
  readonly method?: 'GET' | 'POST'
  /** Sends the parameters by the browser, also where clients push them. */
  readonly plain?: boolean
}

export interface PostOptions {
  /** Parameters in the URL, where they do not belong. */
  readonly query?: Params
  readonly client?: Client | undefined
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  /** The key of a DPoP proof, and what is wrong with the proof. */
  readonly key?: ClientKey | undefined
  readonly change?: Change
}

export interface LabOptions {
  readonly server: Server
  readonly wire: Wire
  readonly clients: Clients
  readonly provided: readonly Client[]
  readonly traits: Traits
  readonly recordings: readonly Recording[]
  readonly credentials: { readonly username: string; readonly password: string } | undefined
  /** The key of DPoP proofs of this run. */
  readonly key: ClientKey
  /** The URL of a client metadata document. */
  readonly documentUrl?: string | undefined
  /** Checks may wait until something has expired. */
  readonly isSlow?: boolean
}
