/** What a server and a command say when the database or the clock cannot be right. */
import { openSync, readFileSync, truncateSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { warnOfPastClock } from '../../src/cli/clock-check.ts'
import { auditEvent } from '../../src/domain/audit.ts'
import { newestMigration } from '../../src/storage/migrations.ts'
import { openStore } from '../../src/storage/open.ts'
import { newFolder, run } from '../helpers/command.ts'

t.test('a damaged database ends every command with one line that names the command to restore', async (t) => {
  const damages: Record<string, (file: string) => void> = {
    cut: (file) => truncateSync(file, 30_000),
    'without its head': (file) => writeFileSync(file, Buffer.alloc(20_000, 'x')),
    'with bad pages': (file) => {
      const target = openSync(file, 'r+')
      for (let at = 4096; at < readFileSync(file).length; at += 4096)
        writeSync(target, Buffer.alloc(300, 255), 0, 300, at)
    },
  }
  for (const [name, damage] of Object.entries(damages)) {
    const data = newFolder(t)
    await run(['group', 'create', 'staff', '--data', data])
    damage(join(data, 'lychgate.db'))
    for (const command of [
      ['client', 'list'],
      ['dev', '--port', '0'],
    ]) {
      const { code, stderr } = await run([...command, '--data', data])
      t.equal(code, 1, name)
      t.match(
        stderr,
        /^lychgate: store: [^\n]+; stop the server, and replace the database by a backup: lychgate restore FILE\n$/,
      )
    }
  }
})

t.test('a clock in the past is said at the start', async (t) => {
  const store = await openStore('sqlite::memory:')
  t.teardown(() => store.close())
  const warnings: unknown[] = []
  const at = async (now: number) => {
    warnings.length = 0
    await warnOfPastClock({ warn: (line: unknown) => warnings.push(line) }, store, () => now)
    return warnings.join()
  }
  const made = newestMigration()
  t.ok(made > 1_700_000_000 && made < Date.now() / 1000)
  t.equal(await at(made), '')
  t.match(
    await at(1_577_836_800),
    /^the clock is in the past: it is 2020-01-01 00:00:00 UTC, and this version of the server was made: 20/,
  )
  await store.write(auditEvent('user-added', { by: 'server', at: made + 1000 }))
  t.equal(await at(made + 1000), '')
  t.equal(await at(made + 941), '', 'machines of one store may differ a little')
  t.match(await at(made + 900), /and the newest event of the store: 20/)
})
