import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readAsset } from './assets.ts'

/**
 * Loads the native code of a driver from the executable; the build replaces `require` with this. The system loads code
 * only from files, so it is written to a private folder of this user while it loads.
 * @throws {Error} with one line for the operator.
 */
export function loadAddon(name: `${string}.node`): unknown {
  const module = { exports: {} }
  try {
    const folder = mkdtempSync(join(tmpdir(), 'lychgate-'))
    try {
      writeFileSync(join(folder, name), readAsset(name), { mode: 0o500 })
      process.dlopen(module, join(folder, name))
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new Error(
      `cannot load its driver through ${tmpdir()}: ${reason}; set TMPDIR to a folder that allows programs`,
      { cause },
    )
  }
  return module.exports
}
