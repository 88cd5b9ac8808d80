/**
 * Debian packages by the apt of this machine, from the mirrors that it is set up for. They are downloaded and not
 * installed, so root is not needed, no service is started, and nothing stays on the machine.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The exit code of a script that needs what this machine does not have, as in sysexits.h. */
export const unavailable = 69

/** States in one line why something is not available on this machine. */
export class ProgramsMissing extends Error {}

interface Wanted {
  /** Debian's name, such as `arm64`; by default that of this machine. */
  readonly architecture?: string
  /** Whether their dependencies come with them even if this machine has those. */
  readonly isComplete?: boolean
  /** Whether they come without what they depend on, and also where this machine has them. */
  readonly isAlone?: boolean
}

/**
 * Downloads packages and what they depend on, and returns the files.
 * @throws {ProgramsMissing}
 */
export function downloadPackages(
  folder: string,
  names: readonly string[],
  { architecture, isComplete = false, isAlone = false }: Wanted = {},
): readonly string[] {
  if (!existsSync('/usr/bin/apt-get')) {
    throw new ProgramsMissing(`${names.join(', ')}: not on this machine, and it has no apt-get to get them`)
  }
  const apt = join(folder, 'apt')
  for (const path of ['lists/partial', 'cache/archives/partial'])
    mkdirSync(join(apt, path), { recursive: true })
  writeFileSync(join(apt, 'status'), '')
  const options = [
    `Dir::State::lists=${apt}/lists`,
    `Dir::Cache=${apt}/cache`,
    'Debug::NoLocking=1',
    'APT::Install-Recommends=0',
    ...(isComplete ? [`Dir::State::status=${apt}/status`] : []),
    ...(architecture === undefined
      ? []
      : [`APT::Architecture=${architecture}`, `APT::Architectures::=${architecture}`]),
  ].flatMap((option) => ['-o', option])
  const archives = join(apt, 'cache/archives')
  const command = isAlone ? ['download'] : ['--yes', '--download-only', 'install']
  for (const args of [['update'], [...command, ...names]]) {
    const { status, stderr } = spawnSync('apt-get', [...options, '--quiet', ...args], {
      encoding: 'utf8',
      cwd: archives,
    })
    if (status === 0) continue
    // The first warning is closer to the cause than the final error.
    const line = stderr.split('\n').find((text) => /^[EW]: /.test(text))
    throw new ProgramsMissing(
      `${names.join(', ')}: not on this machine, and apt-get cannot get them: ${line?.slice(3) ?? 'no word why'}`,
    )
  }
  return globSync(`${archives}/*.deb`).sort()
}

/** Returns the mirrors of Debian that the apt of this machine uses, as lines of a sources.list. */
export function debianSources(): string {
  const format = 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)'
  const args = ['indextargets', '--format', format, 'Created-By: Packages', 'Origin: Debian']
  const { stdout } = spawnSync('apt-get', args, { encoding: 'utf8' })
  if (!stdout) throw new ProgramsMissing('Debian mirrors: apt has none here; run apt-get update')
  return stdout
}

/** Unpacks package files into a folder, with the same layout as `/`. */
export function unpackPackages(files: readonly string[], folder: string): void {
  mkdirSync(folder, { recursive: true })
  for (const file of files) {
    const { status, stderr } = spawnSync('dpkg-deb', ['--extract', file, folder], { encoding: 'utf8' })
    if (status !== 0) throw new Error(`${file}: ${stderr}`)
  }
}
