/** One JSON document on standard output. */
export function printJson(value: unknown): void {
  process.stdout.write(`${jsonText(value, 2)}\n`)
}

/** Prints `value` as JSON with `--json`, otherwise `members`, one a line. */
export function printResult(
  { json }: { readonly json?: true },
  value: unknown,
  members: Readonly<Record<string, unknown>>,
): void {
  if (json) printJson(value)
  else printMembers(members)
}

/** JSON in which characters that command a terminal are escaped: it reads back as the same value. */
export function jsonText(value: unknown, indent?: number): string {
  return JSON.stringify(value, undefined, indent).replaceAll(/[^\P{C}\n]|[\p{Zl}\p{Zp}]/gu, (character) =>
    Array.from(
      { length: character.length },
      (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`,
    ).join(''),
  )
}

/** One line a member, names aligned; lists are joined, absent and empty members left out. */
export function printMembers(members: Readonly<Record<string, unknown>>): void {
  const lines = Object.entries(members).filter(([, value]) => value !== undefined && `${value}` !== '')
  const width = Math.max(...lines.map(([name]) => name.length))
  for (const [name, value] of lines) {
    const text = `${Array.isArray(value) ? value.join(' ') : value}`
    process.stdout.write(`${name.padEnd(width)}  ${visible(text)}\n`)
  }
}

/** One line a row, columns aligned; nothing at all for no rows. */
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
 * Received text on one line: without line breaks, which would forge output lines, and without characters that
 * control a terminal or change the direction of the text.
 */
export function visible(text: string): string {
  return text.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '\ufffd')
}

/** The same for a text of several lines of ours. */
export function visibleLines(text: string): string {
  return text.split('\n').map(visible).join('\n')
}

/** An instant in seconds since the epoch as users read it: `2026-11-20 13:05:00 UTC`. */
export function instant(seconds: number): string {
  // Made when it is needed: it loads tables of dates and languages, which a server that starts can do without.
  const dateAndTime = new Intl.DateTimeFormat('sv-SE', {
    dateStyle: 'short',
    timeStyle: 'medium',
    timeZone: 'UTC',
  })
  return `${dateAndTime.format(seconds * 1000)} UTC`
}
