/** One JSON document on standard output. */
export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value, undefined, 2)}\n`)
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
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  for (const row of rows) {
    process.stdout.write(
      `${row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd()}\n`,
    )
  }
}

/** What anybody sent may hold characters that command a terminal, or turn the direction of what follows. */
export function visible(text: string): string {
  return text.replaceAll(/[^\P{C}\n]/gu, '\ufffd')
}

/** An instant in seconds since the epoch as people read it: `2026-11-20 13:05:00 UTC`. */
export function instant(seconds: number): string {
  // Made when it is needed: it loads tables of dates and languages, which a server that starts can do without.
  const dateAndTime = new Intl.DateTimeFormat('sv-SE', {
    dateStyle: 'short',
    timeStyle: 'medium',
    timeZone: 'UTC',
  })
  return `${dateAndTime.format(seconds * 1000)} UTC`
}
