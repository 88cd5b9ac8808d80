/**
 * The files of the image, in two folders: the few libraries that the executable needs, of Debian packages, and the
 * executable with its driver, licences and bill of materials. There is no shell and no other program in it.
 */
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { root } from '../build/bundle.ts'
import { billOfMaterials, type Component } from '../build/sbom.ts'
import { downloadPackages, unpackPackages } from '../debian/packages.ts'

/** The user and group that the server runs as. A number, because orchestrators cannot verify that a name is not root. */
export const user = 10_001

/** Where the executable looks for its driver, next to its own folder. */
const driver = 'usr/local/lib/lychgate/better_sqlite3.node'
const documents = 'usr/local/share/doc/lychgate'

/** What the executable is linked to; base-files names the system, which scanners look for. */
const packages = ['libc6', 'libstdc++6', 'base-files']
/** What of these packages and of those they need is in the image. */
const kept = [
  'lib64/*',
  '{lib,usr/lib}/*-linux-gnu/*.so*',
  'usr/lib/os-release',
  'etc/{os-release,debian_version}',
  'usr/share/common-licenses/*',
  'usr/share/doc/{libc6,libstdc++6,libgcc-s1,gcc-*-base,base-files}/copyright',
]

/** The architectures of Debian for the platforms of Node. */
export const debianArchitectures = { x64: 'amd64', arm64: 'arm64' } as const
export type Architecture = keyof typeof debianArchitectures

/** What an image is made of. */
export interface Content {
  readonly architecture: Architecture
  readonly executable: string
}

/**
 * Writes `base`, `server` and `volume` below a folder, which is emptied first.
 * @throws {ProgramsMissing} where apt is not to be had.
 */
export function writeContent(folder: string, { architecture, executable }: Content): void {
  rmSync(folder, { recursive: true, force: true })
  const components = writeBase(join(folder, 'base'), debianArchitectures[architecture])
  const write = (path: string, content: string | Uint8Array) => {
    const file = join(folder, 'server', path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, content)
  }
  write('usr/local/bin/lychgate', '')
  cpSync(executable, join(folder, 'server/usr/local/bin/lychgate'))
  write(driver, readFileSync(`${root}node_modules/better-sqlite3/prebuilds/linux-${architecture}.node`))
  write(`${documents}/LICENSE`, readFileSync(`${root}LICENSE`))
  write(`${documents}/licences.txt`, readFileSync(`${executable}.licences.txt`))
  write(`${documents}/sbom.cdx.json`, billOfMaterials(components))
  write('etc/passwd', `lychgate:x:${user}:${user}::/data:/nonexistent\n`)
  write('etc/group', `lychgate:x:${user}:\n`)
  write('etc/nsswitch.conf', 'hosts: files dns\n')
  mkdirSync(join(folder, 'volume/data'), { recursive: true })
  // Whatever the umask is; deploy/Dockerfile copies it with this mode.
  chmodSync(join(folder, 'volume/data'), 0o770)
}

/** Writes the libraries, and where scanners of Debian's distroless images look for the packages they come from. */
function writeBase(folder: string, architecture: string): readonly Component[] {
  const work = mkdtempSync(join(tmpdir(), 'lychgate-base-'))
  try {
    const files = downloadPackages(work, packages, { architecture, isComplete: true })
    const unpacked = join(work, 'unpacked')
    unpackPackages(files, unpacked)
    const status = join(folder, 'var/lib/dpkg/status.d')
    mkdirSync(status, { recursive: true })
    for (const path of globSync(kept, { cwd: unpacked }))
      cpSync(join(unpacked, path), join(folder, path), { verbatimSymlinks: true })
    return files.flatMap((file) => {
      const control = execFileSync('dpkg-deb', ['--field', file], { encoding: 'utf8' })
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(control)?.[1] ?? ''
      const [name, version] = [field('Package'), field('Version')]
      // Only base-files asks for it, for scripts that do not run here.
      if (name === 'mawk') return []
      writeFileSync(join(status, name), control)
      const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}`
      return [{ type: 'library', name, version, purl } as const]
    })
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}
