import { randomBytes } from 'node:crypto'
import t from 'tap'
import type { Handle, HandleKind, OpenedHandle } from '../../src/domain/handle.ts'
import { recentHandles } from '../../src/keys/recent-handles.ts'

const code: Handle = { kind: 'code', grantId: 'AAAAAAAAAAAAAAAA', seq: 0, issuedAt: 0, expiresAt: 60 }
const opened = (kind: HandleKind): OpenedHandle => ({
  ...code,
  kind,
  tokenId: 'token',
  hasTagOf: () => true,
})

t.test('however many access tokens are opened, at most 4,096 are kept', async (t) => {
  const { find, keepOpened: keep } = recentHandles()
  const texts = Array.from({ length: 10_000 }, (_, each) => `token ${each}`)
  for (const text of texts) keep(text, opened('access'))
  const kept = texts.filter((text) => find(text, ['access']) !== undefined)
  t.ok(kept.length > 0 && kept.length <= 4096, `${kept.length} tokens`)
  t.equal(kept.at(-1), texts.at(-1), 'the last one is kept')
})

t.test('of what is opened only access tokens are kept, and none of more than 512 characters', async (t) => {
  const { find, keepOpened: keep } = recentHandles()
  keep('code', opened('code'))
  keep('refresh', opened('refresh'))
  t.equal(find('code', ['code']), undefined)
  t.equal(find('refresh', ['refresh']), undefined)
  const [longest, longer] = ['a'.repeat(512), 'a'.repeat(513)]
  for (const text of [longest, longer]) keep(text, opened('access'))
  t.ok(find(longest, ['access']))
  t.equal(find(longer, ['access']), undefined)
})

t.test('a code that was made is kept until it is found, as a code', async (t) => {
  const { find, keepCode } = recentHandles()
  keepCode('code', code, 'secret')
  t.equal(find('code', ['access', 'refresh']), undefined)
  const found = find('code', ['access', 'code'])
  t.match(found, code)
  t.ok(found?.hasTagOf('secret'))
  t.notOk(found?.hasTagOf('another secret'))
  t.equal(find('code', ['code']), undefined)
})

t.test('however many codes are made, at most 4,096 are kept, and each is found as itself', async (t) => {
  const { find, keepCode } = recentHandles()
  const texts = Array.from({ length: 10_000 }, () => randomBytes(60).toString('base64url'))
  for (const [seq, text] of texts.entries()) keepCode(text, { ...code, seq }, 'secret')
  const found = texts.flatMap((text, seq) => {
    const handle = find(text, ['code'])
    return handle === undefined ? [] : [handle.seq === seq]
  })
  t.ok(found.length > 3000 && found.length <= 4096, `${found.length} codes`)
  t.ok(found.every(Boolean), 'as itself')
})
