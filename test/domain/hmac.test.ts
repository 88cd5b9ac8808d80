import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import { hmac, hmacText } from '../../src/domain/hmac.ts'

const expected = (secret: string | Uint8Array, message: string | Uint8Array) =>
  createHmac('sha256', secret).update(message).digest()
const latin1 = (bytes: Buffer) => bytes.toString('latin1')

t.test(
  'every key of up to 200 bytes gives the HMAC of the platform, whatever was computed before',
  async (t) => {
    const bytes = fc.uint8Array({ maxLength: 200 })
    const message = fc.oneof(
      fc.uint8Array({ maxLength: 3000 }),
      fc.string({ unit: 'binary', maxLength: 1500 }),
    )
    fc.assert(
      fc.property(
        fc.oneof(bytes, fc.string({ unit: 'binary', maxLength: 70 })),
        message,
        (secret, content) => {
          t.equal(hmac(secret, content), latin1(expected(secret, content)))
        },
      ),
      { numRuns: 500 },
    )
    for (let length = 0; length <= 200; length += 1) {
      const secret = Buffer.alloc(length, length)
      t.equal(hmac(secret, 'a message'), latin1(expected(secret, 'a message')), `a key of ${length} bytes`)
    }
    for (const length of [0, 959, 960, 1023, 1024, 1025, 10_000]) {
      const content = 'x'.repeat(length)
      t.equal(
        hmac('a secret', content),
        latin1(expected('a secret', content)),
        `a message of ${length} bytes`,
      )
    }
  },
)

t.test('the vectors of RFC 4231 §4 are met', async (t) => {
  const vectors = [
    [Buffer.alloc(20, 0x0b), 'Hi There', 'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7'],
    [
      'Jefe',
      'what do ya want for nothing?',
      '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    ],
    [
      Buffer.alloc(131, 0xaa),
      'Test Using Larger Than Block-Size Key - Hash Key First',
      '60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54',
    ],
  ] as const
  for (const [secret, message, digest] of vectors)
    t.equal(Buffer.from(hmac(secret, message), 'latin1').toString('hex'), digest)
})

t.test('as text it is base64url, of all bytes or the first ones', async (t) => {
  t.equal(hmacText('a', 'b'), expected('a', 'b').toString('base64url'))
  t.equal(hmacText('a', 'b', 16), expected('a', 'b').subarray(0, 16).toString('base64url'))
})
