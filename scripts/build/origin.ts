/** What a build is named after: the version of package.json, and the commit with its time. */
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { originOfSources } from '../../src/system/version.ts'
import { root } from './bundle.ts'

/** The version, which package.json alone declares. */
export const version: string = JSON.parse(readFileSync(`${root}package.json`, 'utf8')).version

/** Returns the commit, with `-dirty` if the sources differ from it. */
export function commit(): string {
  return originOfSources().replace('commit ', '')
}

/**
 * Returns the instant that files of a build get, in seconds, so that two builds of a commit are the same bytes:
 * SOURCE_DATE_EPOCH, or the time of the commit.
 */
export function buildInstant(): number {
  const given = process.env['SOURCE_DATE_EPOCH']
  if (given !== undefined && /^\d{1,10}$/.test(given)) return Number(given)
  return Number(execFileSync('git', ['log', '-1', '--format=%ct'], { cwd: root, encoding: 'utf8' }))
}

/** Whether these sources are the ones of a release: the commit has the tag of its version. */
export function isRelease(): boolean {
  const { status, stdout } = spawnSync(
    'git',
    ['describe', '--tags', '--exact-match', '--match', `v${version}`],
    {
      cwd: root,
      encoding: 'utf8',
    },
  )
  return status === 0 && stdout.trim() === `v${version}` && !commit().endsWith('-dirty')
}
