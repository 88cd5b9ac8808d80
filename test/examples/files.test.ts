/** The example of users, groups and clients as files. */
import { cpSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { newFolder } from '../helpers/command.ts'
import { runHere } from '../helpers/commands.ts'
import { example, startExampleServer } from '../helpers/examples.ts'

const { location } = await startExampleServer(t)
const folder = newFolder(t)
const files = join(folder, 'files')
cpSync(example('files'), files, { recursive: true })
const environment = { NIGHTLY_IMPORT_SECRET: 'n'.repeat(64) }
const apply = (...flags: string[]) => runHere(['apply', '-f', files, ...flags, ...location], { environment })

t.test('the files are applied once', async (t) => {
  t.match(await apply(), { code: 0, stdout: /\+ client grades[\s\S]*2 users, and 2 clients added/ })
  t.equal(statSync(join(files, 'grades.secret')).mode & 0o777, 0o600)
  t.match(await apply('--dry-run'), { code: 0, stdout: 'nothing to change\n' })
})
