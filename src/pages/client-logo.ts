import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { put } from '../domain/decision.ts'
import type { Client, Hash, Seconds } from '../domain/model.ts'
import { single } from '../domain/parameters.ts'
import { recordKind } from '../domain/record.ts'
import { hashSecret } from '../domain/secret.ts'
import type { Needs } from '../feature/deps.ts'
import { addressPrefix } from '../http/address-prefix.ts'
import { parametersOf } from '../http/parameters.ts'
import { boundedCache } from '../outbound/bounded-cache.ts'
import { spenderFor } from '../outbound/budgets.ts'
import { FetchFailed } from '../outbound/exchange.ts'
import { imageType } from './theme/theme.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Returns the logo at a URL that a client names, if this server has it; it may be too old. */
    knownLogo(client: Client, uri: string): Promise<ClientLogo | undefined>
  }
}

/** A logo that was fetched, or could not be. A client has one. */
interface ClientLogo {
  readonly id: Hash
  readonly clientId: string
  /** The hash of where it is from. */
  readonly source?: Hash
  /** Base64; absent: there is no image to show. */
  readonly image?: string
  readonly expiresAt: Seconds
}

export const clientLogoKind = recordKind<ClientLogo>('client-logo', {
  id: ({ id }) => id,
  clientId: ({ clientId }) => clientId,
  expiresAt: ({ expiresAt }) => expiresAt,
})

/** How long a logo is kept, that of a document for as long as documents are, and how long none is looked for again. */
const keepSeconds = { image: 30 * 86_400, published: 86_400, nothing: 3600 }
/** The memory that logos take of clients which are not stored, or never got a token. */
const mostCachedBytes = 4_194_304
const path = '/client-logo'

/**
 * Returns where a page has the logo of a client from, RFC 7591 §2: from this server. What clients that registered
 * themselves without an initial access token name is never fetched; a host vouches for what its document names.
 * Undefined also for one that could not be fetched.
 * @param isDevice No authorization request fetched the logo of its document before: a page must not show when it is seen.
 */
export async function clientLogoUrl(
  app: FastifyInstance,
  { service, clock }: Needs<'service' | 'clock'>,
  client: Client,
  isDevice?: true,
): Promise<string | undefined> {
  const uri = logoOf(client)
  if (uri === undefined) return undefined
  const known = await app.knownLogo(client, uri)
  if (isDevice && client.published !== undefined && known === undefined) return undefined
  const isNothing = known !== undefined && known.image === undefined && clock() < known.expiresAt
  return isNothing ? undefined : `${service.prefix}${path}?${new URLSearchParams({ client_id: client.id })}`
}

function logoOf({ origin, admitted, published, logoUri }: Client): string | undefined {
  return origin === 'registered' && (admitted ?? published) === undefined ? undefined : logoUri
}

/** Whether its logo is stored: of a document, once its client got a token. */
function isStored({ published, issuedAt, usedAt }: Client): boolean {
  return published === undefined || (published.namedFrom === undefined && usedAt > issuedAt)
}

/**
 * Serves the logos of clients. One is fetched when the first page needs it, through the guarded fetcher, and shown if
 * its first bytes are those of a PNG, JPEG or WebP image. That of a client with a document is fetched when its
 * authorization request arrives, before any page, so that no browser shows when it was seen.
 */
export const clientLogo = fp<Needs<'store' | 'clock' | 'service' | 'fetchUrl'>>(
  async (app, { service, store, clock, fetchUrl }) => {
    const cache = boundedCache<ClientLogo>(mostCachedBytes)
    const loading = new Map<Hash, Promise<ClientLogo>>()
    app.seams.requestChecks.add((client) => {
      if (client.published !== undefined) void prefetch(client)
    })
    app.decorate('knownLogo', async (client, uri) => {
      const id = hashSecret(client.id)
      const known = isStored(client) ? await store.find(clientLogoKind, id) : cache.get(id)
      return known?.source === hashSecret(uri) ? known : undefined
    })

    const options = { config: { limit: 'authorization' }, schema: { hide: true } } as const
    app.get(service.prefix + path, options, async (request, reply) => {
      const clientId = single(parametersOf(request.query), 'client_id') ?? ''
      const client = await app.resolveClient(clientId, 'seen', addressPrefix(request.ip))
      const uri = client === undefined || client.lockedAt !== undefined ? undefined : logoOf(client)
      const logo = client === undefined || uri === undefined ? undefined : await load(client, uri)
      const body = Buffer.from(logo?.image ?? '', 'base64')
      const type = imageType(body)
      if (type === undefined) return reply.code(404).send()
      return reply.type(type).header('cache-control', 'private, max-age=86400').send(body)
    })

    async function prefetch(client: Client): Promise<void> {
      const uri = logoOf(client)
      if (uri === undefined) return
      await load(client, uri).catch((error) => app.log.warn({ err: error }, 'a logo could not be stored'))
    }

    async function load(client: Client, uri: string): Promise<ClientLogo> {
      const known = await app.knownLogo(client, uri)
      if (known !== undefined && clock() < known.expiresAt) return known
      const key = hashSecret(JSON.stringify([client.id, uri]))
      const running = loading.get(key) ?? fetchLogo(client, uri).finally(() => loading.delete(key))
      loading.set(key, running)
      return running
    }

    async function fetchLogo(client: Client, uri: string): Promise<ClientLogo> {
      const image = await fetchImage(client, uri)
      const found = client.published === undefined ? 'image' : 'published'
      const expiresAt = clock() + keepSeconds[image === undefined ? 'nothing' : found]
      const id = hashSecret(client.id)
      const source = hashSecret(uri)
      const logo = { id, clientId: client.id, source, expiresAt, ...(image !== undefined && { image }) }
      if (isStored(client)) await store.write(put(clientLogoKind, logo))
      else cache.set(id, logo, image?.length ?? 0)
      return logo
    }

    async function fetchImage(client: Client, uri: string): Promise<string | undefined> {
      try {
        const { body } = await fetchUrl(uri, spenderFor(client))
        return imageType(body) === undefined ? undefined : body.toString('base64')
      } catch (error) {
        if (!(error instanceof FetchFailed)) throw error
        app.log.warn({ err: error, url: uri }, 'the logo of a client could not be fetched')
        return undefined
      }
    }
  },
)
