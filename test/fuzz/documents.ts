import { createServer } from 'node:http'
import type { Development } from '../../src/feature/deps.ts'
import type { HttpResponse } from './connection.ts'
import type { Dice } from './dice.ts'
import { noteGrants } from './learn.ts'
import { metadata } from './metadata.ts'
import type { Sent } from './request.ts'
import { clientOf, isAt, parametersOf, sentValue } from './rights.ts'
import { nasty, nearly } from './values.ts'
import type { LiveClient, World } from './world.ts'

/** The web site of clients that are known by the URL of their metadata document. */
export interface Site {
  readonly origin: string
  /** What is sent at each path. */
  readonly published: Map<string, string>
  /** URLs whose documents the server may use; at all others it must reject the client. */
  readonly usable: Set<string>
  close(): void
}

/** Loopback may be fetched by a development server alone; the rest of this one is that of production. */
export const fetchesLoopback: Development = {
  withKnownPasswords: (check) => check,
  withRecording: (deps) => ({ deps, observe: async () => {} }),
  plugin: async () => {},
}

export async function startSite(): Promise<Site> {
  const published = new Map<string, string>()
  const server = createServer((request, response) => {
    const text = published.get(request.url ?? '')
    response.writeHead(text === undefined ? 404 : 200, { 'content-type': 'application/json' })
    response.end(text)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const close = () => {
    server.closeAllConnections()
    server.close()
  }
  return { origin: `http://127.0.0.1:${port}`, published, usable: new Set(), close }
}

type Members = Record<string, unknown>

/** Publishes a document: right, with one fault, or with something that the server may use or not. Returns its client. */
export function publishDocument(world: World, dice: Dice): LiveClient {
  const { site } = world
  const path = `/clients/${site.published.size}.json`
  const id = site.origin + path
  const own = { ...metadata(dice), client_id: id, token_endpoint_auth_method: 'none' }
  const kind = dice.weighted({ right: 4, wrong: 4, odd: 2 })
  const text = kind === 'right' ? JSON.stringify(own) : kind === 'wrong' ? wrong(own, dice) : odd(own, dice)
  site.published.set(path, text)
  if (kind !== 'wrong') site.usable.add(id)
  const uris = ['redirect_uris' in own ? own.redirect_uris : []].flat().map(String)
  world.redirectUris.set(id, new Set(uris))
  if (kind !== 'wrong') noteGrants(own, world)
  return { id, method: 'none', redirectUris: uris }
}

/** A client_id that is not the URL of the document, though a URL parser may think so. */
export function nearlyDocument({ id }: LiveClient, dice: Dice): string {
  const { origin, pathname } = new URL(id)
  return dice.pick([
    `${origin}/.${pathname}`,
    `${origin}/x/..${pathname}`,
    `${origin}/%2e${pathname}`,
    `${id}#`,
    `${id}?`,
    id.replace('http:', 'HTTP:'),
    id.replace('//', '//user@'),
    id.replace('127.0.0.1', '127.1'),
    id.replace('127.0.0.1', '0x7f000001'),
    `https://10.0.0.1${pathname}`,
    `https://[::ffff:169.254.169.254]${pathname}`,
    nearly(id, dice),
  ])
}

function wrong(own: Members, dice: Dice): string {
  const text = JSON.stringify(own)
  const change = dice.pick<Members>([
    { client_id: `${own['client_id']}/` },
    { client_id: [own['client_id']] },
    { client_id: undefined },
    { client_secret: 'x' },
    { client_secret_expires_at: 0 },
    {
      token_endpoint_auth_method: dice.pick(['client_secret_basic', 'client_secret_jwt', 'private_key_jwt']),
    },
    {
      redirect_uris: dice.pick<unknown>([
        undefined,
        [],
        'https://a.example',
        ['app:/cb', 'javascript:x'],
        {},
      ]),
    },
    { padding: 'x'.repeat(5200) },
  ])
  return dice.pick([
    JSON.stringify({ ...own, ...change }),
    JSON.stringify({ ...own, ...change }),
    JSON.stringify({ ...own, ...change }),
    text.slice(0, -1 - dice.below(text.length - 1)),
    text.replace('{', '{"client_id":"https://a.example/",'),
    `[${text}]`,
    '',
  ])
}

function odd(own: Members, dice: Dice): string {
  const value = dice.pick<unknown>([null, true, -1, [], {}, [[]], { a: 1 }, ...nasty])
  const name = dice.pick([
    'client_name',
    'client_uri',
    'logo_uri',
    'grant_types',
    'scope',
    'jwks',
    '__proto__',
    'x',
  ])
  return JSON.stringify(Object.fromEntries([...Object.entries(own), [name, value]]))
}

/** A client_id that is a URL counts only if its document can be used; undefined if it does not. */
export function faultOfDocument(
  sent: Sent,
  { status, headers }: HttpResponse,
  world: World,
): string | undefined {
  const begins = isAt(sent, '/oauth/authorize') && /^\/(?:login|consent)\?/.test(headers['location'] ?? '')
  if (sent.bytes || !(begins || (isAt(sent, '/api/oauth/par') && status === 201))) return undefined
  const asked = parametersOf(sent)
  const id = (begins ? sentValue(asked, 'client_id') : clientOf(sent, asked, world)) ?? ''
  return !/^https?:/i.test(id) || world.site.usable.has(id) ? undefined : `${id} is a client`
}
