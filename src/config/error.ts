import { readFileSync } from 'node:fs'

/** An invalid configuration. Each fault is one line: the setting, what is wrong with it, what to write. */
export class ConfigError extends Error {
  /** Every fault; the message is the first. */
  readonly faults: readonly string[]

  constructor(faults: string | readonly string[], options?: ErrorOptions) {
    // Names come from files and environments: a line break in one must not make two lines.
    const lines = [faults].flat().map((line) => line.replace(/\p{Cc}+/gu, ' '))
    super(lines[0], options)
    this.name = 'ConfigError'
    this.faults = lines
  }
}

/**
 * Returns the text of the file that a setting names.
 * @throws {ConfigError} naming the setting, the file and the reason of the operating system.
 */
export function readText(path: string, setting: string): string {
  return readBytes(path, setting).toString('utf8')
}

/**
 * Returns the secret in the file that a setting names, without the line break that editors and `echo` add.
 * @throws {ConfigError} naming the setting, the file and the reason of the operating system.
 */
export function readSecret(path: string, setting: string): string {
  return readText(path, setting).replace(/\r?\n$/, '')
}

/**
 * Returns the bytes of the file that a setting names.
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

/** Returns the end of an error about an unknown name: what was probably meant. */
export function suggestion(name: string, candidates: readonly string[]): string {
  const best = nearest(name, candidates)
  return best === undefined ? '' : `; did you mean ${best}?`
}

/** Returns the candidate that differs in the fewest characters, if they are few enough for a typing error. */
export function nearest(name: string, candidates: readonly string[]): string | undefined {
  const ranked = candidates
    .map((candidate) => ({ candidate, distance: editDistance(name.toLowerCase(), candidate.toLowerCase()) }))
    .sort((one, other) => one.distance - other.distance)
  const best = ranked[0]
  return best && best.distance <= Math.max(2, name.length / 3) ? best.candidate : undefined
}

/** Returns the Levenshtein distance, computed one row at a time. */
function editDistance(text: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (let i = 1; i <= text.length; i++) {
    const next = [i]
    for (let j = 1; j <= other.length; j++) {
      const replaced = at(row, j - 1) + (text[i - 1] === other[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, at(row, j) + 1, at(next, j - 1) + 1))
    }
    row = next
  }
  return at(row, other.length)
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? 0
}
