/** Writes the JSON Schema of the files of `lychgate apply`; with --check it only compares. */
import { readFileSync, writeFileSync } from 'node:fs'
import { filesSchema } from '../src/cli/files/schema.ts'
import { declared } from '../src/features.ts'

const file = new URL('../examples/files/lychgate.schema.json', import.meta.url)
const wanted = `${JSON.stringify(filesSchema(declared), undefined, 2)}\n`

if (!process.argv.includes('--check')) writeFileSync(file, wanted)
else if (readFileSync(file, 'utf8') !== wanted) {
  process.stderr.write(
    'examples/files/lychgate.schema.json: out of date; run npm run generate -- files-schema\n',
  )
  process.exitCode = 1
}
