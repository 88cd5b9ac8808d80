/** Makes dist/release: everything that users install, with its digests and where it comes from. */
import { execFileSync } from 'node:child_process'
import {
  copyFileSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { version as versionLine } from '../../src/system/version.ts'
import { dist, root } from '../build/bundle.ts'
import { buildInstant, commit, isRelease, version } from '../build/origin.ts'
import { billOfMaterials } from '../build/sbom.ts'
import { scriptCommand } from '../command.ts'
import { packDeb } from '../deb/package.ts'
import { ProgramsMissing, unavailable } from '../debian/packages.ts'
import { tar } from '../image/archive.ts'
import { currentExecutable, makeImage } from '../image/image.ts'
import { buildArm64 } from './arm64.ts'
import { changes, envelope, sha256, statement } from './provenance.ts'
import { tryRelease } from './try.ts'
import { buildWindows } from './windows.ts'

const folder = `${dist}/release`
const at = (name: string) => join(folder, name)

async function release(key: string | undefined): Promise<void> {
  const began = performance.now()
  // The executable of this machine goes by the name of that platform.
  const here = `${process.platform}-${process.arch}`
  if (here !== 'linux-x64') throw new ProgramsMissing(`a release is made on linux-x64, and this is ${here}`)
  const name = isRelease() ? version : `${version}-${commit().slice(0, 8)}`
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const x64 = await currentExecutable()
  const arm64 = at(`lychgate-${name}-linux-arm64`)
  copyFileSync(x64, at(`lychgate-${name}-linux-x64`))
  copyFileSync(`${x64}.licences.txt`, at(`lychgate-${name}.licences.txt`))
  const printed = await buildArm64(arm64)
  if (printed !== undefined && printed !== versionLine()) throw new Error(`arm64 prints ${printed}`)
  say(
    printed === undefined
      ? 'linux-arm64 was made and not started: no qemu'
      : 'linux-arm64 started under qemu',
  )
  for (const [architecture, executable] of [
    ['x64', x64],
    ['arm64', arm64],
  ] as const) {
    const image = at(`lychgate-${name}-linux-${architecture}.oci.tar`)
    await makeImage(image, `${dist}/image`, { architecture, executable })
    const deb = await packDeb(executable, architecture)
    copyFileSync(deb, at(deb.slice(dist.length + 1)))
    rmSync(deb)
  }
  rmSync(`${arm64}.licences.txt`)
  const windows = at(`lychgate-${name}-win-x64.exe`)
  await buildWindows(windows)
  rmSync(`${windows}.licences.txt`)
  say('win-x64 was made and not started')
  execFileSync('npm', ['run', '--silent', 'package', '--', '--pack-destination', folder], {
    cwd: root,
    stdio: 'ignore',
  })
  packChart(`lychgate-chart-${name}.tgz`)
  writeFileSync(at(`lychgate-${name}.cdx.json`), billOfMaterials())
  writeFileSync(at('CHANGES.txt'), changes())
  const files = readdirSync(folder).sort()
  const paths = files.map(at)
  const content = envelope(statement(paths), key)
  writeFileSync(at(`lychgate-${name}.intoto.json`), `${JSON.stringify(content)}\n`)
  const all = readdirSync(folder).sort()
  writeFileSync(at('SHA256SUMS'), all.map((file) => `${sha256(at(file))}  ${file}\n`).join(''))
  await tryRelease(folder, name)
  say('the executable was installed from the folder as docs/install.md says, and the npm package with npx')
  for (const file of globSync('*', { cwd: folder }).sort())
    say(`dist/release/${file}, ${(statSync(at(file)).size / 1e6).toFixed(1)} MB`)
  if (process.env['RECORD'] !== undefined) record(printed !== undefined, (performance.now() - began) / 1000)
  say(
    key === undefined
      ? 'the provenance is unsigned: --key names the key of the releaser'
      : 'the provenance is signed',
  )
}

/** Writes down what was made and what of it was started; a run takes too long for CI. */
function record(hasStartedArm64: boolean, seconds: number): void {
  const bytes = globSync('*', { cwd: folder })
    .sort()
    .map((file) => [file, statSync(at(file)).size])
  const result = {
    date: new Date().toISOString().slice(0, 10),
    version: versionLine(),
    seconds: Math.round(seconds),
    installedFromFolder: true,
    npxInEmptyFolder: true,
    arm64StartedUnderQemu: hasStartedArm64,
    windowsStarted: false,
    bytes: Object.fromEntries(bytes),
  }
  writeFileSync(`${root}test/build/release-results.json`, `${JSON.stringify(result, null, 2)}\n`)
}

/** Packs the chart as `helm package` does, which needs no helm. */
function packChart(name: string): void {
  const plain = at('chart.tar')
  tar(plain, { folder: `${root}deploy/helm`, path: 'lychgate' }, buildInstant())
  writeFileSync(at(name), gzipSync(readFileSync(plain)))
  rmSync(plain)
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

const { key } = scriptCommand('release', 'Makes dist/release: everything that users install, for Linux.')
  .option('--key <file>', 'the private key that signs the provenance, PEM')
  .parse()
  .opts<{ key?: string }>()
try {
  await release(key)
} catch (error) {
  if (!(error instanceof ProgramsMissing)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = unavailable
}
