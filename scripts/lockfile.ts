/**
 * Keeps one line in package-lock.json that npm drops: better-sqlite3 ships its binaries and declares `"gypfile":
 * false`, but `npm ci` reads that only from the lockfile, and otherwise needs Python and a compiler. `--check` fails
 * if the line is missing, and if something would be installed that has no hash in the lockfile; without it the line is
 * written. Run it after `npm install`.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { unhashedPackages } from './lockfile/hashes.ts'

const file = new URL('../package-lock.json', import.meta.url)
const text = readFileSync(file, 'utf8')
const entry = /("node_modules\/better-sqlite3": \{\n)( +)(?! |"gypfile")/
if (process.argv.includes('--check')) {
  const faults = [
    ...(entry.test(text) ? ['better-sqlite3 would be compiled; run npm run generate -- lockfile'] : []),
    ...unhashedPackages(JSON.parse(text)).map((name) => `${name} is installed without a hash`),
  ]
  for (const fault of faults) process.stderr.write(`package-lock.json: ${fault}\n`)
  process.exit(faults.length === 0 ? 0 : 1)
}
writeFileSync(file, text.replace(entry, '$1$2"gypfile": false,\n$2'))
