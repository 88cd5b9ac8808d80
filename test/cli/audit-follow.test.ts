import t from 'tap'
import { follow } from '../../src/cli/audit.ts'
import { auditEvent } from '../../src/domain/audit.ts'
import type { AuditEvent, AuditEventName } from '../../src/domain/model.ts'
import { openStore } from '../../src/storage/open.ts'

t.test('each event is printed once, in order, even if events are equal or in the same second', async (t) => {
  const store = await openStore('sqlite::memory:')
  t.teardown(() => store.close())
  const happen = (name: AuditEventName, at: number) => store.write(auditEvent(name, { by: 'server', at }))
  await happen('key-made', 10)
  for (const at of [99, 100]) await happen('sign-in', at)
  const told: AuditEvent[][] = []
  const end = new AbortController()
  const following = follow(
    store,
    { since: 0, limit: 2 },
    () => 100,
    async (events) => {
      told.push([...events])
      if (told.length === 1) {
        await happen('sign-in', 100)
        await happen('sign-out', 100)
      } else if (told.length === 2) await happen('sign-out', 100)
      else end.abort()
    },
    end.signal,
  )
  await following
  t.strictSame(
    told.map((events) => events.map(({ name }) => name)),
    [['sign-in', 'sign-in'], ['sign-in', 'sign-out'], ['sign-out']],
  )
})
