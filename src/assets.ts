import { existsSync, readFileSync } from 'node:fs'
import { getRawAsset, isSea } from 'node:sea'

/**
 * A file that belongs to the code, by its path from the top of the project: `views/style.css`. It lies beside `src` or
 * `dist`, or inside the executable where the server is one file.
 */
export function readAsset(path: string): Buffer {
  return isSea() ? Buffer.from(getRawAsset(path)) : readFileSync(new URL(`../${path}`, import.meta.url))
}

/** The same, as text. */
export function readTextAsset(path: string): string {
  return readAsset(path).toString('utf8')
}

/** Whether there is such a file; not asked of the executable, which has what was put into it. */
export function hasAsset(path: string): boolean {
  return !isSea() && existsSync(new URL(`../${path}`, import.meta.url))
}
