import { generateKeyPairSync } from 'node:crypto'
import { compactVerify } from 'jose'
import t from 'tap'
import { encoded, signCompact } from '../../src/keys/sign.ts'

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })

/** Whether R and S are small: DER encodes them in fewer than 32 bytes. */
function areSmall(jws: string): readonly boolean[] {
  const signature = Buffer.from(jws.split('.')[2] ?? '', 'base64url')
  return [0, 32].map((at) => signature.readUInt16BE(at) < 0x80)
}

t.test('an ES256 signature is two numbers of 32 bytes, even if one of them is small', async (t) => {
  const wereSmall = [false, false]
  // One number in 512 is small; 20,000 signatures without one have a probability of 10^-17.
  for (let count = 0; count < 20 || (wereSmall.includes(false) && count < 20_000); count += 1) {
    const jws = await signCompact('ES256', encoded({ alg: 'ES256' }), { count }, privateKey)
    const small = areSmall(jws)
    if (count >= 20 && !small.includes(true)) continue
    for (const [index, isSmall] of small.entries()) wereSmall[index] ||= isSmall
    const { payload } = await compactVerify(jws, publicKey)
    t.strictSame(JSON.parse(Buffer.from(payload).toString()), { count })
  }
  t.strictSame(wereSmall, [true, true])
})
