/** Makes dist/lychgate.oci.tar: the server as an image, by tar, apt and this script alone. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Option } from 'commander'
import { isoInstant } from '../../src/system/system.ts'
import { version as versionLine } from '../../src/system/version.ts'
import { dist } from '../build/bundle.ts'
import { buildExecutable } from '../build/executable.ts'
import { buildInstant } from '../build/origin.ts'
import { scriptCommand } from '../command.ts'
import { ProgramsMissing, unavailable } from '../debian/packages.ts'
import { writeArchive } from './archive.ts'
import { imageConfig } from './config.ts'
import { type Content, debianArchitectures, user, writeContent } from './content.ts'

/** Writes the image of this content; `folder` gets its files, as deploy/Dockerfile copies them. */
export async function makeImage(file: string, folder: string, content: Content): Promise<void> {
  writeContent(folder, content)
  const instant = buildInstant()
  const created = isoInstant(instant)
  const config = imageConfig(created)
  const architecture = debianArchitectures[content.architecture]
  const layers = [
    { folder: join(folder, 'base'), path: '.', title: 'libraries' },
    { folder: join(folder, 'server'), path: '.', title: 'server' },
    // Of the group root as well: platforms that choose any user put it into that group.
    { folder: join(folder, 'volume'), path: 'data', title: 'data', owner: `${user}:0`, mode: '0770' },
  ]
  await writeArchive(file, layers, { created, architecture, config }, instant)
}

/** Returns dist/lychgate, built if it is not there or not of these sources. */
export async function currentExecutable(): Promise<string> {
  const file = `${dist}/lychgate`
  const { stdout } = spawnSync(file, ['--version'], { encoding: 'utf8' })
  const isCurrent = stdout === `${versionLine()}\n` && !stdout.includes('-dirty')
  mkdirSync(dist, { recursive: true })
  if (!isCurrent) await buildExecutable(file)
  return file
}

async function main(): Promise<void> {
  const { content: isContentOnly } = scriptCommand(
    'image',
    'Makes dist/lychgate.oci.tar, an image of the server, and its files in dist/image.',
  )
    .addOption(new Option('--content', 'only make the files; deploy/Dockerfile copies them'))
    .parse()
    .opts<{ content?: true }>()
  const content = {
    architecture: process.arch === 'arm64' ? 'arm64' : 'x64',
    executable: await currentExecutable(),
  } as const
  if (isContentOnly) return writeContent(`${dist}/image`, content)
  const file = `${dist}/lychgate.oci.tar`
  await makeImage(file, `${dist}/image`, content)
  process.stdout.write(`dist/lychgate.oci.tar, ${(statSync(file).size / 1e6).toFixed(1)} MB\n`)
}

if (import.meta.main) {
  try {
    await main()
  } catch (error) {
    if (!(error instanceof ProgramsMissing)) throw error
    process.stderr.write(`${error.message}\n`)
    process.exitCode = unavailable
  }
}
