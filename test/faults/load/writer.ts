/** A process that writes to a database all the time, as one worker of several: `writer.ts FILE WRITES`. */
import { randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { insertUse } from '../../../src/domain/decision.ts'
import { openStore } from '../../../src/storage/open.ts'

const [file = '', writes = ''] = process.argv.slice(2)
const store = await openStore(`sqlite:${file}`, { isShared: true })
let [written, longest] = [0, 0]

async function write(): Promise<void> {
  while (written < Number(writes)) {
    written += 1
    await store.write(insertUse({ id: randomBytes(32).toString('base64url'), expiresAt: 4_000_000_000 }))
    if (written % 50 === 0) longest = Math.max(longest, statSync(`${file}-wal`).size)
  }
}

await Promise.all(Array.from({ length: 16 }, write))
await store.close()
process.stdout.write(String(longest))
