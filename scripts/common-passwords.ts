/**
 * Writes src/users/common-passwords.txt: the 3,000 most common passwords of 8 characters and more, most common first.
 * `--check` fails if the file differs from its source list.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { dictionary } from '@zxcvbn-ts/language-common'

const file = new URL('../src/users/common-passwords.txt', import.meta.url)
const commonest = dictionary['passwords-common'].filter((password) => [...String(password)].length >= 8)
const text = `${commonest.slice(0, 3000).join('\n')}\n`

if (process.argv.includes('--check')) {
  if (readFileSync(file, 'utf8') !== text) {
    process.stderr.write(
      'src/users/common-passwords.txt is out of date; run npm run generate -- common-passwords\n',
    )
    process.exitCode = 1
  }
} else writeFileSync(file, text)
