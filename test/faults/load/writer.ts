/** A process that writes to a database all the time, as one worker of several: `writer.ts FILE WRITES`. */
import { randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { insertUse } from '../../../src/domain/decision.ts'
import { openStore } from '../../../src/storage/open.ts'
import { StoreUnavailable } from '../../../src/storage/store.ts'

const [file = '', writes = ''] = process.argv.slice(2)
const store = await openStore(`sqlite:${file}`, { isShared: true })
let [written, longest] = [0, 0]

/** A machine that stands still may keep the lock for longer than a request waits. Then a client tries again. */
async function insertOne(): Promise<void> {
  const use = { id: randomBytes(32).toString('base64url'), expiresAt: 4_000_000_000 }
  for (;;) {
    try {
      return await store.write(insertUse(use))
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
    }
  }
}

async function write(): Promise<void> {
  while (written < Number(writes)) {
    written += 1
    await insertOne()
    if (written % 50 === 0) longest = Math.max(longest, statSync(`${file}-wal`).size)
  }
}

await Promise.all(Array.from({ length: 16 }, write))
await store.close()
process.stdout.write(String(longest))
