import { createHmac } from 'node:crypto'
import t from 'tap'
import {
  type Handle,
  type HandleKind,
  handleBelongsTo,
  handlePrefix,
  keyIdOf,
  openedAs,
  openHandle,
  sealHandle,
  tokenIdOf,
} from '../../src/domain/handle.ts'
import { fc } from '../helpers/generated.ts'
import { active, bytesOf, contentsOf, handleKey, handleKeys, keysOf } from '../helpers/samples.ts'

const kinds: readonly HandleKind[] = ['code', 'refresh', 'access']
const grant = active(3)
const narrowing = { scope: ['courses:read'], resource: ['https://api.example/v1', 'https://auth.example'] }

const samples: readonly Handle[] = [
  ...kinds.map((kind) => contentsOf(grant, kind)),
  contentsOf(grant, 'access', { narrowing }),
  contentsOf(grant, 'access', { narrowing: { scope: [], resource: ['urn:a'] } }),
  contentsOf(grant, 'refresh', { confirmation: { jkt: 'thumbprint' } }),
  contentsOf(grant, 'access', { narrowing, confirmation: { jkt: 'thumbprint' } }),
]
const seal = (handle: Handle) => sealHandle(handle, handleKey, grant.secret)
/** Whether the text opens and belongs to this row. */
const isGenuine = (text: string, kind: HandleKind) => {
  const handle = openHandle(handleKeys, text, kind)
  return handle !== undefined && handleBelongsTo(handle, grant)
}

t.test('a sealed handle opens to the same contents, and seals to the same text again', async (t) => {
  for (const handle of samples) {
    const text = seal(handle)
    t.match(openHandle(handleKeys, text, handle.kind), handle)
    t.ok(isGenuine(text, handle.kind))
    t.equal(seal({ ...handle }), text)
    t.match(text, new RegExp(`^${handlePrefix[handle.kind]}[\\w-]{78,}$`))
  }
})

t.test('what is no grant id cannot be sealed', async (t) => {
  // The rest of the buffer would be uninitialised memory.
  for (const grantId of ['', 'short', grant.id.slice(1)]) {
    t.throws(() => seal(contentsOf({ ...grant, id: grantId }, 'access')), TypeError, grantId)
  }
})

t.test('every field of a handle changes its text', async (t) => {
  const handle = contentsOf(grant, 'access')
  const variants: readonly Handle[] = [
    handle,
    { ...handle, kind: 'refresh' },
    { ...handle, grantId: bytesOf('another', 12) },
    { ...handle, seq: handle.seq + 1 },
    { ...handle, issuedAt: handle.issuedAt + 1 },
    { ...handle, expiresAt: handle.expiresAt + 1 },
    { ...handle, narrowing },
    { ...handle, narrowing: { ...narrowing, scope: [] } },
  ]
  const texts = variants.map(seal).map((text) => text.replace(/^lyc_[a-z]+_/, ''))
  t.equal(new Set(texts).size, variants.length)
})

t.test('a handle opens only as its own kind, even with the prefix of another', async (t) => {
  for (const kind of kinds) {
    const text = seal(contentsOf(grant, kind))
    t.equal(openHandle(handleKeys, text, ...kinds)?.kind, kind)
    for (const other of kinds.filter((each) => each !== kind)) {
      t.equal(openHandle(handleKeys, text, other), undefined)
      const renamed = handlePrefix[other] + text.slice(handlePrefix[kind].length)
      t.equal(openHandle(handleKeys, renamed, ...kinds), undefined, `${kind} as ${other}`)
    }
    t.equal(openHandle(handleKeys, text.slice(handlePrefix[kind].length), ...kinds), undefined)
    t.equal(openHandle(handleKeys, text.toUpperCase(), ...kinds), undefined)
    t.equal(openHandle(handleKeys, text), undefined, 'no kind asked for')
  }
})

t.test('a handle with any bit flipped does not open', async (t) => {
  for (const handle of samples) {
    const prefix = handlePrefix[handle.kind]
    const bytes = Buffer.from(seal(handle).slice(prefix.length), 'base64url')
    for (let at = 0; at < bytes.length; at += 1) {
      for (let bit = 0; bit < 8; bit += 1) {
        const flipped = Buffer.from(bytes)
        flipped[at] = (bytes[at] ?? 0) ^ (1 << bit)
        const text = prefix + flipped.toString('base64url')
        if (isGenuine(text, handle.kind)) t.fail(`byte ${at} bit ${bit} of ${handle.kind}`)
        // Only the grant's own tag needs the row; everything before it never reaches the database.
        const isOpened = openHandle(handleKeys, text, handle.kind) !== undefined
        if (isOpened !== at >= bytes.length - 16) t.fail(`byte ${at} is checked at the wrong time`)
      }
    }
  }
  t.pass('every one rejected')
})

t.test('a truncated or extended handle does not open', async (t) => {
  for (const handle of samples) {
    const text = seal(handle)
    for (let length = 0; length < text.length; length += 1) {
      if (isGenuine(text.slice(0, length), handle.kind)) t.fail(`${length} of ${text.length} characters`)
    }
    for (const more of ['A', 'AA', 'AAAA', '=', '==', ' ', '\n', '\0', '.', text]) {
      t.notOk(isGenuine(text + more, handle.kind), JSON.stringify(more))
      t.notOk(isGenuine(more + text, handle.kind), JSON.stringify(more))
    }
  }
})

t.test('another spelling of the same bytes does not open', async (t) => {
  for (const handle of samples) {
    const prefix = handlePrefix[handle.kind]
    const encoded = seal(handle).slice(prefix.length)
    const bytes = Buffer.from(encoded, 'base64url')
    const spellings = [
      `${encoded.slice(0, 10)} ${encoded.slice(10)}`,
      `${encoded.slice(0, 10)}\n${encoded.slice(10)}`,
      `${encoded.slice(0, 10)}*${encoded.slice(10)}`,
      `${encoded}=`,
      `${encoded}==`,
      bytes.toString('base64').padEnd(encoded.length + 1, '='),
      bytes.toString('hex'),
      bytes.toString('latin1'),
    ]
    for (const [at, spelling] of spellings.entries()) {
      t.notOk(isGenuine(prefix + spelling, handle.kind), `spelling ${at}`)
    }
    // The last character carries bits that decoding drops.
    const last = encoded.slice(-1)
    for (const other of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_') {
      if (other !== last && isGenuine(prefix + encoded.slice(0, -1) + other, handle.kind)) t.fail(other)
    }
  }
})

t.test('any text either opens or is no handle, and never an exception', async (t) => {
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 200 }),
    fc.string({ unit: fc.constantFrom(...'ABCz09-_+/='), maxLength: 300 }),
    fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes).toString('base64url')),
    fc.constantFrom('', '__proto__', 'undefined', 'null', 'A'.repeat(9000), 'A'.repeat(8180)),
  )
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(fc.constantFrom('', ...Object.values(handlePrefix)), text, (prefix, rest) => {
        return openHandle(handleKeys, prefix + rest, ...kinds) === undefined
      }),
      { seed: 6749, numRuns: 2000 },
    ),
  )
})

t.test('what has less than the head of a handle does not open, whatever its tag', async (t) => {
  const signed = Buffer.from([3, handleKey.id, ...Array(20).fill(0)])
  const tag = createHmac('sha256', handleKey.secret).update(signed).digest().subarray(0, 16)
  const text = handlePrefix.access + Buffer.concat([signed, tag, Buffer.alloc(16)]).toString('base64url')
  t.equal(openHandle(handleKeys, text, 'access'), undefined)
})

t.test('a handle longer than any this server makes is not decoded', async (t) => {
  const long = seal(contentsOf(grant, 'access', { narrowing: { scope: ['s'.repeat(7000)], resource: [] } }))
  t.ok(long.length > 8192)
  t.equal(openHandle(handleKeys, long, 'access'), undefined)
  // Three bytes are four characters, so only a refresh token can have this length exactly.
  const sealLong = (kind: HandleKind, length: number) =>
    seal(contentsOf(grant, kind, { narrowing: { scope: ['s'.repeat(length)], resource: [] } }))
  const texts = [sealLong('refresh', 6076), sealLong('access', 6077)]
  t.strictSame(
    texts.map((text) => [text.length, openHandle(handleKeys, text, ...kinds) !== undefined]),
    [
      [8192, true],
      [8193, false],
    ],
  )
})

t.test('a handle of an older key opens only while that key is kept', async (t) => {
  const [old, fresh] = [handleKey, { id: 8, secret: bytesOf('another key', 32) }]
  const text = sealHandle(contentsOf(grant, 'refresh'), old, grant.secret)
  t.ok(openHandle(keysOf(fresh, old), text, 'refresh'))
  t.equal(openHandle(keysOf(fresh), text, 'refresh'), undefined)
  t.equal(openHandle(keysOf({ ...fresh, id: old.id }), text, 'refresh'), undefined, 'the id is no proof')
})

t.test('a stolen row forges nothing: without the key its handle cannot be made', async (t) => {
  for (const handle of samples) {
    for (const guess of ['', 'A'.repeat(43), grant.secret]) {
      const forged = sealHandle(handle, { id: handleKey.id, secret: guess }, grant.secret)
      t.equal(openHandle(handleKeys, forged, handle.kind), undefined)
    }
  }
})

t.test('a stolen key forges nothing: its handle belongs to no grant', async (t) => {
  for (const handle of samples) {
    for (const guess of ['', bytesOf('guess', 16), handleKey.secret]) {
      const forged = openHandle(handleKeys, sealHandle(handle, handleKey, guess), handle.kind)
      t.ok(forged && !handleBelongsTo(forged, grant))
    }
  }
})

t.test('a handle belongs only to its own grant', async (t) => {
  const handle = openHandle(handleKeys, seal(contentsOf(grant, 'code')), 'code')
  t.ok(handle && handleBelongsTo(handle, grant))
  t.notOk(handle && handleBelongsTo(handle, { ...grant, id: bytesOf('another', 12) }))
  t.notOk(handle && handleBelongsTo(handle, { ...grant, secret: bytesOf('another', 16) }))
})

t.test('a handle that was just sealed is as if it were opened', async (t) => {
  for (const handle of samples) {
    const [made, read] = [
      openedAs(handle, seal(handle), grant.secret),
      openHandle(handleKeys, seal(handle), handle.kind),
    ]
    t.strictSame({ ...made, hasTagOf: undefined }, { ...read, hasTagOf: undefined })
    for (const one of [made, read, read])
      t.strictSame([one?.hasTagOf(grant.secret), one?.hasTagOf(bytesOf('x', 16))], [true, false], handle.kind)
    t.equal(read?.hasTagOf(grant.secret), true, 'and again')
  }
})

t.test('the bytes of a handle stay: tokens of the version before are valid', async (t) => {
  const bytes = kinds.map((kind) =>
    Buffer.from(seal(contentsOf(grant, kind)).slice(handlePrefix[kind].length), 'base64url'),
  )
  t.strictSame(
    bytes.map((one) => [one[0], one[1], one.length]),
    [
      [1, handleKey.id, 58],
      [2, handleKey.id, 58],
      [3, handleKey.id, 58],
    ],
  )
})

t.test('a handle names the key that sealed it', async (t) => {
  for (const handle of samples) t.equal(keyIdOf(seal(handle)), handleKey.id)
  const other = sealHandle(contentsOf(grant, 'refresh'), { ...handleKey, id: 200 }, grant.secret)
  t.equal(keyIdOf(other), 200)
  t.strictSame(
    [keyIdOf('lyc_code_'), keyIdOf('x'), keyIdOf('xlyc_code_AAAA')],
    [undefined, undefined, undefined],
  )
})

t.test('an access token has the same name when it is sealed and when it is opened', async (t) => {
  for (const handle of samples.filter(({ kind }) => kind === 'access')) {
    const text = seal(handle)
    t.equal(tokenIdOf(text), openHandle(handleKeys, text, 'access')?.tokenId)
    t.match(tokenIdOf(text), /^[\w-]{22}$/)
  }
})
