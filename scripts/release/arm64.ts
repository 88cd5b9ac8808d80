/** The executable for linux-arm64, made on another platform. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildExecutable } from '../build/executable.ts'
import { downloadPackages, ProgramsMissing, unpackPackages } from '../debian/packages.ts'
import { unpackNode } from './node-package.ts'

const platform = 'linux-arm64'

/**
 * Builds it with the Node of the lockfile for that platform, and returns what it prints of its version when qemu runs
 * it; undefined where there is no qemu.
 */
export async function buildArm64(file: string): Promise<string | undefined> {
  const work = mkdtempSync(join(tmpdir(), 'lychgate-arm64-'))
  try {
    await buildExecutable(file, {
      platform,
      node: join(unpackNode(work, platform), 'bin/node'),
      strip: stripOf(work),
    })
    return printedVersion(work, file)
  } finally {
    rmSync(work, { recursive: true })
  }
}

/** Debian's strip for that platform; a `strip` that cannot read the file leaves it as it is. */
function stripOf(work: string): readonly string[] {
  const programs = join(work, 'strip')
  try {
    unpackPackages(downloadPackages(programs, ['binutils-aarch64-linux-gnu'], { isComplete: true }), programs)
  } catch (error) {
    if (!(error instanceof ProgramsMissing)) throw error
    return ['strip']
  }
  return [
    'env',
    `LD_LIBRARY_PATH=${librariesIn(programs)}`,
    join(programs, 'usr/bin/aarch64-linux-gnu-strip'),
  ]
}

function librariesIn(folder: string): string {
  const all = join(folder, 'usr/lib')
  return readdirSync(all)
    .filter((name) => name.endsWith('-linux-gnu'))
    .map((name) => join(all, name))
    .join(':')
}

/** Runs it with the libraries of Debian's packages for that platform. */
function printedVersion(work: string, file: string): string | undefined {
  try {
    const system = join(work, 'system')
    const options = { architecture: 'arm64', isComplete: true }
    unpackPackages(downloadPackages(join(work, 'arm64'), ['libc6', 'libstdc++6'], options), system)
    const qemu = join(work, 'qemu')
    if (!existsSync('/usr/bin/qemu-aarch64-static')) {
      mkdirSync(qemu)
      unpackPackages(downloadPackages(qemu, ['qemu-user-static']), qemu)
    }
    const program = ['/', qemu]
      .map((folder) => join(folder, 'usr/bin/qemu-aarch64-static'))
      .find((path) => existsSync(path))
    if (program === undefined) return undefined
    return execFileSync(program, ['-L', system, file, '--version'], { encoding: 'utf8' }).trim()
  } catch (error) {
    if (!(error instanceof ProgramsMissing)) throw error
    return undefined
  }
}
