/** Prints a JSON document. */
export function printJson(value: unknown): void {
  process.stdout.write(`${jsonText(value, 2)}\n`)
}

/** Prints `value` as JSON with `--json`, otherwise `members`, one per line. */
export function printResult(
  { json }: { readonly json?: true },
  value: unknown,
  members: Readonly<Record<string, unknown>>,
): void {
  if (json) printJson(value)
  else printMembers(members)
}

/** Prints records as a JSON array with `--json`, otherwise one line per record. */
export function printList<Listed>(
  { json }: { readonly json?: true },
  records: readonly Listed[],
  describe: (record: Listed) => unknown,
  lineOf: (record: Listed) => readonly string[],
): void {
  if (json) printJson(records.map((record) => describe(record)))
  else printColumns(records.map((record) => lineOf(record)))
}

/** Returns JSON in which characters that control a terminal are escaped; it parses to the same value. */
export function jsonText(value: unknown, indent?: number): string {
  return JSON.stringify(value, undefined, indent).replaceAll(/[^\P{C}\n]|[\p{Zl}\p{Zp}]/gu, (character) =>
    Array.from(
      { length: character.length },
      (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`,
    ).join(''),
  )
}

/**
 * Prints one line per member with aligned names. Joins lists, prints objects as JSON, omits absent and empty members.
 */
export function printMembers(members: Readonly<Record<string, unknown>>): void {
  const lines = Object.entries(members).filter(([, value]) => value !== undefined && `${value}` !== '')
  const width = Math.max(...lines.map(([name]) => name.length))
  for (const [name, value] of lines) {
    process.stdout.write(`${name.padEnd(width)}  ${visible(textOf(value))}\n`)
  }
}

function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.map(textOf).join(' ')
  return typeof value === 'object' ? JSON.stringify(value) : `${value}`
}

/** Prints one line per row with aligned columns. */
export function printColumns(rows: readonly (readonly string[])[]): void {
  const shown = rows.map((row) => row.map(visible))
  const widths = (shown[0] ?? []).map((_, column) =>
    Math.max(...shown.map((row) => row[column]?.length ?? 0)),
  )
  for (const row of shown) {
    process.stdout.write(
      `${row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd()}\n`,
    )
  }
}

/**
 * Returns text without line breaks, which could forge output lines, and without characters that control a terminal or
 * change the direction of the text.
 */
export function visible(text: string): string {
  return text.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '\ufffd')
}

/** Returns the same for a text whose line breaks are ours. */
export function visibleLines(text: string): string {
  return text.split('\n').map(visible).join('\n')
}

/** Formats an instant, in seconds since the epoch: `2026-11-20 13:05:00 UTC`. */
export function instant(seconds: number): string {
  // Created late: it loads tables of dates and languages, which a server does not need to start.
  const dateAndTime = new Intl.DateTimeFormat('sv-SE', {
    dateStyle: 'short',
    timeStyle: 'medium',
    timeZone: 'UTC',
  })
  return `${dateAndTime.format(seconds * 1000)} UTC`
}

/** Formats an instant as part of a file's name: `2026-11-20T13-05-00Z`. */
export function dated(seconds: number): string {
  return instant(seconds).replace(' UTC', 'Z').replace(' ', 'T').replaceAll(':', '-')
}
