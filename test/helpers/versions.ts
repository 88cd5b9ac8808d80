import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { newFolder } from './command.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
/** The first commit that serves with tables that a newer version has added to. */
const firstWithRule = '535e370b'

/** A version that is not this one, and the file that Node starts it by. */
export interface OtherVersion {
  readonly name: string
  readonly entry: string
}

/**
 * Extracts the version before this one: the tag of the last release, or, until there is one, a commit. Undefined if
 * this checkout has no history.
 */
export function versionBefore(t: Test): OtherVersion | undefined {
  const git = (...args: readonly string[]) => spawnSync('git', args, { cwd: root, encoding: 'utf8' })
  const described = git('describe', '--tags', '--abbrev=0', '--match=v*', 'HEAD^')
  const name = described.status === 0 ? described.stdout.trim() : firstWithRule
  if (git('cat-file', '-e', `${name}^{commit}`).status !== 0) return undefined
  const folder = newFolder(t)
  const paths = ['src', 'views', 'drizzle', 'openapi', 'package.json', 'package-lock.json']
  const tar = execFileSync('git', ['archive', name, ...paths], { cwd: root, maxBuffer: 1e9 })
  execFileSync('tar', ['-x', '-C', folder], { input: tar })
  addPackages(folder)
  return { name, entry: `${folder}/src/lychgate.js` }
}

/** The packages of this checkout, if it has the versions that the other one was made with. */
function addPackages(folder: string): void {
  const [theirs, ours] = [folder, root].map((at) => readFileSync(`${at}/package-lock.json`, 'utf8'))
  if (theirs === ours) symlinkSync(`${root}node_modules`, `${folder}/node_modules`)
  else execFileSync('npm', ['ci', '--omit=dev', '--ignore-scripts', '--no-audit'], { cwd: folder })
  mkdirSync(`${folder}/dist`)
}

/** Copies what runs of this version, with one migration more. */
export function versionAfter(t: Test, comment: string): OtherVersion {
  const folder = newFolder(t)
  for (const path of ['src', 'views', 'drizzle', 'openapi', 'package.json'])
    cpSync(`${root}${path}`, `${folder}/${path}`, { recursive: true })
  symlinkSync(`${root}node_modules`, `${folder}/node_modules`)
  mkdirSync(`${folder}/dist`)
  for (const dialect of ['sqlite', 'postgres']) {
    const file = `${folder}/drizzle/${dialect}/meta/_journal.json`
    const journal = JSON.parse(readFileSync(file, 'utf8'))
    const last = journal.entries.at(-1)
    journal.entries.push({ ...last, idx: last.idx + 1, when: last.when + 1000, tag: '9999_next' })
    writeFileSync(file, JSON.stringify(journal))
    const statements = [
      'create table badges (id text primary key, user_id text)',
      'alter table users add column badge text',
      "alter table grants add column colour text not null default 'blue'",
    ]
    writeFileSync(
      `${folder}/drizzle/${dialect}/9999_next.sql`,
      `${comment}${statements.join(';--> statement-breakpoint\n')}`,
    )
  }
  return { name: 'the next version', entry: `${folder}/src/lychgate.js` }
}
