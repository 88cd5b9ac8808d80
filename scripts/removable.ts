/**
 * Removes each optional specification from a copy of the project (its folder, its line in features.ts, its generated
 * API description), and shows that the rest compiles, starts, works and no longer mentions it.
 */
import { execFileSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  globSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Argument } from 'commander'
import { scriptCommand } from './command.ts'
import { quickStart } from './quick-start.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const compiler = join(root, 'node_modules/typescript-native/bin/tsc')
/** Where the compiler keeps what it found out about a copy. */
const known = 'removable.tsbuildinfo'
const checking = ['--project', 'tsconfig.removable.json', '--incremental', '--tsBuildInfoFile', known]

/** What a folder registers as a feature can be removed; of these the rest is built. */
const staying: Readonly<Record<string, string>> = {
  'specs/rfc6749-authorization': 'the core',
  'specs/rfc8414-metadata': 'the core: endpoints advertise themselves there',
  'specs/rfc9728-resource-metadata': 'every challenge of the guard points to its document (RFC 9728 §5.1)',
}

/** The line by which src/features.ts imports a feature, with its folder and its name there. */
const importLine = /^import \{ (?<name>\w+) \} from '\.\/(?<folder>[^']+)\/feature\.ts'\n/gm
const list = readFileSync(join(root, 'src/features.ts'), 'utf8')
const features = new Map(
  [...list.matchAll(importLine)].map(([line, name = '', folder = '']) => [folder, { line, name }]),
)
const specifications = globSync('specs/*', { cwd: join(root, 'src') })
const unlisted = specifications.filter((folder) => !features.has(folder) && !(folder in staying))
if (unlisted.length > 0) throw new Error(`src/features.ts does not import ${unlisted.join(', ')}`)
const removable = [...features.keys()].filter((folder) => !(folder in staying)).sort()

const { args } = scriptCommand(
  'check:removable',
  'Take each optional specification out of a copy of the project.',
)
  .addArgument(new Argument('[folder...]', 'only these').choices(removable))
  .parse()
const wanted = removable.filter((folder) => args.length === 0 || args.includes(folder))
const workspace = mkdtempSync(join(tmpdir(), 'lychgate-removable-'))
// Checked once as a whole: each copy after it has the compiler check again only what the removal affects. The copies
// are at one place, so that Node compiles what they share once.
const whole = join(workspace, 'whole')
const copy = join(workspace, 'copy')
const compiled = join(workspace, 'compiled')
copyProject(root, whole)
run(whole, process.execPath, [compiler, ...checking])
const removed = wanted.filter(isRemovable)
rmSync(workspace, { recursive: true })
for (const [folder, why] of Object.entries(staying)) process.stdout.write(`stays    ${folder}: ${why}\n`)
process.stdout.write(`\n${removed.length} of ${wanted.length} can be removed\n`)
process.exitCode = removed.length === wanted.length ? 0 : 1

function isRemovable(folder: string): boolean {
  const began = performance.now()
  copyProject(whole, copy)
  try {
    takeOut(folder)
    run(copy, process.execPath, [compiler, ...checking])
    run(copy, process.execPath, ['scripts/openapi.ts'])
    run(copy, process.execPath, ['test/removable/smoke.ts', ...traces(folder)])
    process.stdout.write(`removed  ${folder}, ${Math.round((performance.now() - began) / 1000)} s\n`)
    return true
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: Buffer | string; stderr?: Buffer | string }
    process.stdout.write(`FAILED   ${folder}\n${stdout}${stderr || error}\n`)
    return false
  } finally {
    rmSync(copy, { recursive: true })
  }
}

/** The texts that no public document may contain without the folder, one each line. */
function traces(folder: string): readonly string[] {
  const lines = readFileSync(join(root, `test/removable/${folder}.txt`), 'utf8').split('\n')
  return lines.filter((line) => line !== '')
}

/** Deletes the folder and its line: the import, and the entry of the list. */
function takeOut(folder: string): void {
  rmSync(join(copy, 'src', folder), { recursive: true })
  const { line, name } = features.get(folder) ?? { line: '', name: '' }
  writeFileSync(join(copy, 'src/features.ts'), list.replace(line, '').replace(`\n  ${name},`, ''))
}

/** Copies the parts of a project that the check needs, and what the compiler knows about them if it ran there. */
function copyProject(from: string, to: string): void {
  const tests = ['test/helpers', 'test/removable']
  for (const part of [
    'src',
    'views',
    'drizzle',
    'openapi',
    'scripts',
    'package.json',
    'tsconfig.json',
    ...tests,
  ])
    cpSync(join(from, part), join(to, part), { recursive: true, filter: isOurs })
  if (existsSync(join(from, known))) cpSync(join(from, known), join(to, known))
  symlinkSync(join(root, 'node_modules'), join(to, 'node_modules'))
  const project = { extends: './tsconfig.json', include: ['src', 'scripts/openapi.ts', 'test/removable'] }
  writeFileSync(join(to, 'tsconfig.removable.json'), JSON.stringify(project))
}

/** Some scripts have packages of their own. */
function isOurs(path: string): boolean {
  return basename(path) !== 'node_modules'
}

function run(cwd: string, file: string, args: readonly string[]): void {
  const path = `${join(root, 'node_modules/.bin')}:${process.env['PATH']}`
  execFileSync(file, args, {
    cwd,
    env: { ...process.env, ...quickStart(compiled), PATH: path },
    stdio: 'pipe',
  })
}
