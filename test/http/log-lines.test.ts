import { spawnSync } from 'node:child_process'
import t from 'tap'

t.test('every line of a process that exits in the same turn is written, in order', async (t) => {
  const source = new URL('../../src/http/log.ts', import.meta.url).href
  const script = `import { logLines } from '${source}'
    for (const n of [1, 2, 3]) logLines().write(n + '\\n')
    process.exit(0)`
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
  t.equal(stdout, '1\n2\n3\n')
})

t.test('the lines before an error that nothing catches are written', async (t) => {
  const source = new URL('../../src/http/log.ts', import.meta.url).href
  for (const end of ["throw new Error('fatal')", "await Promise.reject(new Error('fatal'))"]) {
    const script = `import { logLines } from '${source}'
      logLines().write('the last line\\n')
      ${end}`
    const { stdout, status } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      encoding: 'utf8',
    })
    t.equal(stdout, 'the last line\n', end)
    t.equal(status, 1)
  }
})
