import { closeSync, fstatSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { readAsset } from './assets.ts'

type Addon = `${string}.node`

/**
 * Loads the native code of a driver from the executable; the build replaces `require` with this. The system loads code
 * only from files: from the one that an image or a package installs, or else from a private folder of this user, in
 * which it is written while it loads.
 * @throws {Error} with one line for the operator.
 */
export function loadAddon(name: Addon): unknown {
  const module = { exports: {} }
  if (loadInstalled(name, module)) return module.exports
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

/**
 * Loads it from `../lib/lychgate` of the executable: a server that may write no program needs it there. The file must
 * belong to root, be writable by root alone, and have the same bytes as the one inside. It is loaded by its descriptor,
 * so that what was checked is what runs.
 */
function loadInstalled(name: Addon, module: object): boolean {
  try {
    const file = openSync(join(dirname(process.execPath), '../lib/lychgate', name), 'r')
    try {
      const { uid, mode } = fstatSync(file)
      if (uid !== 0 || (mode & 0o022) !== 0 || !readFileSync(file).equals(readAsset(name))) return false
      process.dlopen(module, `/proc/self/fd/${file}`)
      return true
    } finally {
      closeSync(file)
    }
  } catch {
    return false
  }
}
