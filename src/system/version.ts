import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { assetFolder, readTextAsset } from './assets.ts'

/** Set by the build, as a built server has no git to ask. */
declare const builtFrom: string | undefined

/** The version and the commit of the running server: `0.1.0 (commit 4f1c…)`. */
export function version(): string {
  // `as`: our own package.json.
  const manifest = JSON.parse(readTextAsset('package.json')) as { version: string }
  return `${manifest.version} (${typeof builtFrom === 'undefined' ? originOfSources() : builtFrom})`
}

/** The commit of these sources; `-dirty` if they differ from it, `outside git` without a repository. */
export function originOfSources(): string {
  const root = assetFolder() ?? ''
  // Without this a copy inside another repository would get the commit of that one.
  if (!existsSync(`${root}.git`)) return 'outside git'
  const describe = ['--no-optional-locks', 'describe', '--always', '--dirty', '--exclude=*', '--abbrev=40']
  const { status, stdout } = spawnSync('git', describe, { cwd: root, encoding: 'utf8' })
  return status === 0 ? `commit ${stdout.trim()}` : 'unknown commit'
}
