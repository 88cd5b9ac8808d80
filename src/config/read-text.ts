import { readFileSync } from 'node:fs'
import { ConfigError } from './error.ts'

/**
 * The text of a file that a setting names.
 * @throws {ConfigError} naming the setting, the file and the reason of the operating system.
 */
export function readText(path: string, setting: string): string {
  return readBytes(path, setting).toString('utf8')
}

/**
 * The same, as it is.
 * @throws {ConfigError} naming the setting, the file and the reason of the operating system.
 */
export function readBytes(path: string, setting: string): Buffer {
  try {
    return readFileSync(path)
  } catch (cause) {
    const reason = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unreadable'
    throw new ConfigError(`${setting}: cannot read ${path} (${reason})`, { cause })
  }
}
