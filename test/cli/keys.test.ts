import t from 'tap'
import { keyPolicy } from '../../src/keys/key-policy.ts'
import { loadConfig } from '../../src/settings/load.ts'
import { systemClock } from '../../src/system/system.ts'
import { folderWithKeys, keysIn, runKeys } from '../helpers/keys.ts'

const policy = keyPolicy(loadConfig({ mode: 'dev' }))

t.test('list shows every key with its state, and never a private one', async (t) => {
  const data = await folderWithKeys(t)
  const stored = await keysIn(data)
  const { stdout } = await runKeys(data, 'list')
  const [head, ...rows] = stdout.trimEnd().split('\n')
  t.match(head, /^kid +kind +algorithm +state +created +active from +retires at$/)
  t.equal(rows.length, 4)
  t.match(stdout, /^1 +handle +HS256 +active +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/m)
  const json = JSON.parse((await runKeys(data, 'list', '--json')).stdout)
  t.strictSame(
    json.map(({ kid }: { kid: string }) => kid),
    stored.map(({ id }) => id),
  )
  t.match(json[0], { kind: /signing|handle/, state: 'active', created_at: Number, active_from: Number })
  for (const { sealedPrivate } of stored) t.notOk(`${stdout}${JSON.stringify(json)}`.includes(sealedPrivate))
})

t.test('rotate publishes a successor of every key, once', async (t) => {
  const data = await folderWithKeys(t)
  const { stdout, code } = await runKeys(data, 'rotate')
  t.equal(code, 0)
  t.equal(stdout.match(/ waiting /g)?.length, 4)
  t.match(stdout, /\nRunning servers reload the keys within 60 seconds\.\n$/)
  const stored = await keysIn(data)
  t.equal(stored.length, 8)
  const [old, next] = stored.filter(({ algorithm }) => algorithm === 'RS256')
  t.equal(Number(next?.activeAt), Number(next?.createdAt) + policy.publishAheadSeconds)
  t.equal(Number(old?.retiredAt), Number(next?.activeAt) + policy.overlapSeconds.signing)
  t.equal(JSON.parse((await runKeys(data, 'rotate', '--json')).stdout).length, 8)
  t.strictSame(await keysIn(data), stored, 'the successors that wait are enough')
})

t.test('rotate --algorithm names the keys, and --now makes the successor active at once', async (t) => {
  const data = await folderWithKeys(t)
  const rotated = await runKeys(data, 'rotate', '--algorithm', 'RS256', 'handle', '--now', '--json')
  const states = JSON.parse(rotated.stdout).map((key: Record<string, unknown>) => [
    key['algorithm'],
    key['state'],
  ])
  t.strictSame(states.sort(), [
    ['HS256', 'active'],
    ['HS256', 'verifies only'],
    ['RS256', 'active'],
    ['RS256', 'verifies only'],
  ])
  t.equal((await keysIn(data)).length, 6)
})

t.test(
  'retire ends an active key, creates its successor in one step, and prints the consequences',
  async (t) => {
    const data = await folderWithKeys(t)
    const before = await keysIn(data)
    const kid = before.find(({ algorithm }) => algorithm === 'RS256')?.id ?? ''
    const { code, stdout } = await runKeys(data, 'retire', '--yes', '--', kid)
    t.equal(code, 0)
    t.match(
      stdout,
      new RegExp(`^retired +${kid}\nsuccessor +[\\w-]{43}\nended +every ID Token and JWT access token`),
    )
    const after = await keysIn(data)
    const [old, next] = after.filter(({ algorithm }) => algorithm === 'RS256')
    t.ok(Number(old?.retiredAt) <= systemClock())
    t.equal(next?.activeAt, old?.retiredAt)
    const again = await runKeys(data, 'retire', '--yes', '--', kid)
    t.match(again, { code: 1, stderr: 'lychgate: the key is retired already\n' })
  },
)
