/** Several processes that write to one SQLite file without a pause: none is locked out, and the journal stays short. */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { ended, newFolder } from '../helpers/command.ts'

const writer = fileURLToPath(new URL('load/writer.ts', import.meta.url))

t.test('three processes write 36,000 records, and the journal stays below 64 MiB', async (t) => {
  const file = `${newFolder(t)}/lychgate.db`
  const writers = await Promise.all(
    // Without the hooks that tap puts into children.
    [1, 2, 3].map(() => ended(spawn('env', ['-i', process.execPath, writer, file, '12000']))),
  )
  for (const { code, stdout, stderr } of writers) {
    t.equal(code, 0, stderr)
    t.ok(Number(stdout) > 0 && Number(stdout) < 64 * 2 ** 20, `${stdout} bytes`)
  }
})
