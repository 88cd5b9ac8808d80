import t from 'tap'
import {
  type HandleKey,
  type HandleKind,
  handleBelongsTo,
  openHandle,
  sealHandle,
} from '../../src/domain/handle.ts'
import { callApi, obtainCode, post, refresh } from '../helpers/flow.ts'
import { fc } from '../helpers/generated.ts'
import { active } from '../helpers/samples.ts'
import { introspect, isAlive, startFlow } from '../helpers/wire.ts'

const key: HandleKey = { id: 7, secret: 'k'.repeat(43) }
const keys = { current: key, find: (id: number) => (id === key.id ? key : undefined) }
const grant = active()
const kinds: readonly HandleKind[] = ['code', 'refresh', 'access']
const handle = fc
  .record({
    kind: fc.constantFrom(...kinds),
    seq: fc.nat(5),
    issuedAt: fc.nat(100),
    expiresAt: fc.nat(100),
    narrow: fc.boolean(),
  })
  .map(({ narrow, ...rest }) => ({
    ...rest,
    grantId: grant.id,
    ...(narrow && { narrowing: { scope: ['openid'], resource: ['https://api.example/'] } }),
  }))
  .map((contents) => sealHandle(contents, key, grant.secret))

/** Near misses of a handle, by what an attacker has: the text, its bytes, and other genuine handles. */
const forgery = fc
  .tuple(handle, handle, fc.nat(150), fc.nat(255), fc.nat(12))
  .map(([own, other, at, byte, way]) => {
    const split = own.indexOf('_', 4) + 1
    const [prefix, encoded] = [own.slice(0, split), own.slice(split)]
    const bytes = Buffer.from(encoded, 'base64url')
    const spot = at % bytes.length
    const place = at % encoded.length
    const flipped = Buffer.from(bytes)
    flipped[spot] = (flipped[spot] ?? 0) ^ (byte || 1)
    const foreign = Buffer.from(other.slice(other.indexOf('_', 4) + 1), 'base64url')
    const forms = [
      own,
      prefix + flipped.toString('base64url'),
      prefix + Buffer.concat([bytes.subarray(0, spot), bytes.subarray(spot + 1)]).toString('base64url'),
      prefix +
        Buffer.concat([bytes.subarray(0, spot), Buffer.from([byte]), bytes.subarray(spot)]).toString(
          'base64url',
        ),
      prefix + Buffer.concat([bytes, Buffer.from([byte])]).toString('base64url'),
      // The head of one handle with the tags of another, and the other way round.
      prefix + Buffer.concat([bytes.subarray(0, -32), foreign.subarray(-32)]).toString('base64url'),
      prefix + Buffer.concat([bytes.subarray(0, -16), foreign.subarray(-16)]).toString('base64url'),
      other.slice(0, other.indexOf('_', 4) + 1) + encoded,
      prefix + bytes.toString('base64'),
      `${own}=`,
      prefix + bytes.toString('hex'),
      prefix +
        encoded.slice(0, place) +
        [' ', '\n', '.', '%', '\u00e9', '='][byte % 6] +
        encoded.slice(place),
      own.toUpperCase(),
    ]
    return { own, other, forged: forms[way] ?? own }
  })

t.test('only the exact sealed text opens and belongs to its grant', async (t) => {
  let genuine = 0
  fc.assert(
    fc.property(forgery, ({ own, other, forged }) => {
      const opened = openHandle(keys, forged, ...kinds)
      const counts = opened !== undefined && handleBelongsTo(opened, grant)
      if (counts) genuine += 1
      return counts === (forged === own || forged === other)
    }),
    { numRuns: 20_000 },
  )
  t.ok(genuine > 500, `${genuine} were genuine`)
})

t.test('no endpoint accepts an altered token or code, and the genuine ones stay valid', async (t) => {
  const { server, client, agent, tokens } = await startFlow(t)
  const { access_token: access, refresh_token: refreshToken } = await tokens()
  const code = await obtainCode(server, client, { agent })
  const changed = fc
    .tuple(fc.constantFrom(access, refreshToken, code), fc.nat(200), fc.nat(5))
    .map(([text, at, way]) => {
      const place = at % text.length
      const next = text.charAt(place) === 'A' ? 'B' : 'A'
      const forms = [
        text.slice(0, place) + next + text.slice(place + 1),
        text.slice(0, place) + text.slice(place + 1),
        text.slice(0, place) + next + text.slice(place),
        text.slice(0, place),
        `${text}${next}`,
        text + text,
      ]
      return forms[way] ?? ''
    })
  await fc.assert(
    fc.asyncProperty(changed, async (forged) => {
      const { status } = await callApi(server, '/api/oauth/userinfo', forged)
      const { active } = await introspect(server, client, forged || 'x')
      const revoked = await post(server, '/api/oauth/revoke', { client_id: client.id, token: forged || 'x' })
      const refreshed = await refresh(server, client, forged || 'x')
      const fields = { client_id: client.id, redirect_uri: client.redirectUri, code_verifier: 'v'.repeat(43) }
      const form = { ...fields, grant_type: 'authorization_code', code: forged || 'x' }
      const exchanged = await post(server, '/api/oauth/token', form)
      return (
        status === 401 &&
        active === false &&
        revoked.status === 200 &&
        (await refreshed.text()).includes('"invalid_grant"') &&
        (await exchanged.text()).includes('"invalid_grant"')
      )
    }),
    { numRuns: 60 },
  )
  t.ok(await isAlive(server, access))
  t.equal((await refresh(server, client, refreshToken)).status, 200)
})
