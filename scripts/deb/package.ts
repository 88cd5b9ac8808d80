/** Makes dist/lychgate_VERSION_ARCH.deb of the executable, with dpkg-deb alone. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dist, root } from '../build/bundle.ts'
import { buildInstant, commit, isRelease, version } from '../build/origin.ts'
import { scriptCommand } from '../command.ts'
import { unavailable } from '../debian/packages.ts'
import { type Architecture, debianArchitectures } from '../image/content.ts'
import { currentExecutable } from '../image/image.ts'
import { type Packed, writePackage } from './content.ts'

/**
 * Packs an executable, by default of this commit, and returns the path of the file. A version that is not released sorts
 * before it, and by the time of its commit.
 */
export async function packDeb(
  executable: string,
  architecture: Architecture,
  given: Partial<Pick<Packed, 'version' | 'instant' | 'sources'>> = {},
): Promise<string> {
  const instant = given.instant ?? buildInstant()
  const unreleased = `${version}~${instant}.${commit().slice(0, 8)}`
  const packed = {
    sources: given.sources ?? root,
    executable,
    instant,
    version: given.version ?? (isRelease() ? version : unreleased),
    architecture: debianArchitectures[architecture],
    driver: `${root}node_modules/better-sqlite3/prebuilds/linux-${architecture}.node`,
  }
  const work = mkdtempSync(join(tmpdir(), 'lychgate-deb-'))
  try {
    const tree = join(work, 'tree')
    await writePackage(tree, packed)
    const file = `${dist}/lychgate_${packed.version}_${packed.architecture}.deb`
    // Gzip: every system reads it, and xz would take a minute for a tenth less.
    execFileSync('dpkg-deb', ['--root-owner-group', '-Zgzip', '--build', tree, file], {
      env: { PATH: process.env['PATH'], SOURCE_DATE_EPOCH: String(instant) },
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    return file
  } finally {
    rmSync(work, { recursive: true })
  }
}

if (import.meta.main) {
  const { sources, packageVersion } = scriptCommand(
    'package:deb',
    'Makes a Debian package of the executable.',
  )
    .option('--sources <folder>', 'another checkout, with its dist/lychgate and --package-version')
    .option('--package-version <version>', 'the version, in the form of Debian')
    .parse()
    .opts<{ sources?: string; packageVersion?: string }>()
  if (spawnSync('dpkg-deb', ['--version']).status === 0) {
    const file = await packDeb(
      sources === undefined ? await currentExecutable() : `${sources}/dist/lychgate`,
      process.arch === 'arm64' ? 'arm64' : 'x64',
      { ...(packageVersion && { version: packageVersion }), ...(sources && { sources }) },
    )
    process.stdout.write(`${file.replace(root, '')}, ${(statSync(file).size / 1e6).toFixed(1)} MB\n`)
  } else {
    process.stderr.write('dpkg-deb: not on this machine; the package dpkg has it\n')
    process.exitCode = unavailable
  }
}
