import { createHash, createPrivateKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'

/** A CBOR value that an authenticator sends, RFC 8949. */
export type Cbor = number | string | boolean | Buffer | readonly Cbor[] | ReadonlyMap<number | string, Cbor>

/** Encodes a value with the shortest head, CTAP 2.1 §8. */
export function cbor(value: Cbor): Buffer {
  if (typeof value === 'boolean') return Buffer.from([value ? 0xf5 : 0xf4])
  if (typeof value === 'number') return value < 0 ? head(1, -1 - value) : head(0, value)
  if (typeof value === 'string') return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)])
  if (Buffer.isBuffer(value)) return Buffer.concat([head(2, value.length), value])
  if (value instanceof Map) {
    const members = [...(value as ReadonlyMap<number | string, Cbor>)]
    return Buffer.concat([head(5, members.length), ...members.flat().map((each) => cbor(each as Cbor))])
  }
  const items = value as readonly Cbor[]
  return Buffer.concat([head(4, items.length), ...items.map(cbor)])
}

function head(major: number, length: number): Buffer {
  if (length < 24) return Buffer.from([(major << 5) | length])
  if (length < 256) return Buffer.from([(major << 5) | 24, length])
  return Buffer.from([(major << 5) | 25, length >> 8, length & 255])
}

/** What a test changes in what the authenticator sends. */
export interface CreationOptions {
  readonly format?: string
  /** @param clientDataHash The hash that an attestation signs. */
  readonly statement?: (clientDataHash: Buffer) => ReadonlyMap<string, Cbor>
  readonly credential?: Cbor
  readonly extensions?: Buffer
  /** What made it, 32 hexadecimal digits; by default zeros. */
  readonly aaguid?: string
}

/** The credential that a browser posts, before a test alters it. */
export interface SentCredential {
  id: unknown
  rawId: unknown
  type: unknown
  response: Record<string, unknown>
  clientExtensionResults: unknown
}

/** A software authenticator with one ES256 passkey, Web Authentication Level 3 §6. */
export class Authenticator {
  readonly id = createHash('sha256').update(String(Math.random())).digest()
  readonly key: KeyObject
  readonly publicKey: ReadonlyMap<number, Cbor>
  readonly #origin: string
  #userHandle = ''

  constructor(origin: string, pem?: string) {
    this.#origin = origin
    this.key =
      pem === undefined
        ? generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
        : createPrivateKey(pem)
    const { x = '', y = '' } = this.key.export({ format: 'jwk' })
    this.publicKey = new Map<number, Cbor>([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, Buffer.from(x, 'base64url')],
      [-3, Buffer.from(y, 'base64url')],
    ])
  }

  /** Creates the passkey that `options` of the page requests. */
  create(options: string, changes: CreationOptions = {}): SentCredential {
    const { challenge, user } = JSON.parse(options)
    this.#userHandle = user.id
    const clientData = this.#clientData('webauthn.create', challenge)
    const { format = 'none', statement, credential = this.publicKey, extensions, aaguid = '' } = changes
    const length = Buffer.from([this.id.length >> 8, this.id.length & 255])
    const attested = Buffer.concat([
      Buffer.from(aaguid.padEnd(32, '0'), 'hex'),
      length,
      this.id,
      cbor(credential),
    ])
    const flags = extensions === undefined ? 0x45 : 0xc5
    const authData = Buffer.concat([this.#head(flags), attested, extensions ?? Buffer.alloc(0)])
    const attestation = new Map<string, Cbor>([
      ['fmt', format],
      ['attStmt', statement?.(sha256(clientData)) ?? new Map()],
      ['authData', authData],
    ])
    return this.#credential({
      clientDataJSON: clientData.toString('base64url'),
      attestationObject: cbor(attestation).toString('base64url'),
      transports: ['internal'],
    })
  }

  /** Signs in as `options` of the page requests. */
  get(options: string, extensions?: Buffer): SentCredential {
    const clientData = this.#clientData('webauthn.get', JSON.parse(options).challenge)
    const flags = extensions === undefined ? 0x05 : 0x85
    const authData = Buffer.concat([this.#head(flags), extensions ?? Buffer.alloc(0)])
    const signature = sign('sha256', Buffer.concat([authData, sha256(clientData)]), this.key)
    return this.#credential({
      clientDataJSON: clientData.toString('base64url'),
      authenticatorData: authData.toString('base64url'),
      signature: signature.toString('base64url'),
      userHandle: this.#userHandle,
    })
  }

  #clientData(type: string, challenge: string): Buffer {
    return Buffer.from(JSON.stringify({ type, challenge, origin: this.#origin, crossOrigin: false }))
  }

  #head(flags: number): Buffer {
    return Buffer.concat([
      sha256(Buffer.from(new URL(this.#origin).hostname)),
      Buffer.from([flags, 0, 0, 0, 0]),
    ])
  }

  #credential(response: Record<string, unknown>): SentCredential {
    const id = this.id.toString('base64url')
    return { id, rawId: id, type: 'public-key', response, clientExtensionResults: {} }
  }
}

/** The options that a page passes to the browser: its `data-create` or `data-request`. */
export function askedOf({ html }: { readonly html: string }): string {
  const [, options = ''] = /data-(?:create|request)="([^"]*)"/.exec(html) ?? []
  return options.replaceAll('&quot;', '"').replaceAll('&#34;', '"').replaceAll('&amp;', '&')
}

function sha256(bytes: Buffer): Buffer {
  return createHash('sha256').update(bytes).digest()
}
