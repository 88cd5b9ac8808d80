import { textClaims } from '../../domain/claims.ts'

/** A line of a list of users, as it was written. */
export interface ListedUser {
  /** Where it begins: the first line is 1. */
  readonly line: number
  readonly email: string
  /** Absent: the email address. */
  readonly username?: string
  /** Standard claims that are text, by their names; none is empty. */
  readonly claims: Readonly<Record<string, string>>
  readonly attributes: Readonly<Record<string, string>>
}

/** What is wrong with a line. */
export interface LineFault {
  readonly line: number
  readonly fault: string
}

interface Line {
  readonly line: number
  readonly cells: readonly string[]
}

/** A table from another program: RFC 4180, with the separators of spreadsheets in other countries. */
const separators = [',', ';', '\t']

/**
 * Reads a list of users: an email address on each line, or CSV (RFC 4180) whose first line names the columns, with a
 * comma, a semicolon or a tab between them.
 * @param attributes The names of the attributes that may be columns.
 */
export function readListedUsers(
  text: string,
  attributes: readonly string[],
): { readonly users: readonly ListedUser[]; readonly faults: readonly LineFault[] } {
  const whole = text.replace(/^\ufeff/, '')
  const [first = ''] = whole.trimStart().split(/\r?\n/, 1)
  const separator = separators.find((one) => first.includes(one)) ?? ','
  const parsed = parseLines(whole, separator)
  if ('fault' in parsed) return { users: [], faults: [parsed] }
  const [head, ...rest] = parsed.lines
  if (head === undefined) return { users: [], faults: [{ line: 1, fault: 'has no email address' }] }
  const columns = [...['email', 'username'], ...textClaims, ...attributes]
  const names = head.cells.map((cell) => {
    const typed = cell.toLowerCase().replaceAll(' ', '_')
    return columns.find((name) => name.toLowerCase() === typed) ?? ''
  })
  if (!names.includes('email')) {
    if (head.cells.length === 1)
      return { users: parsed.lines.map((line) => userOf(line, ['email'])), faults: [] }
    return { users: [], faults: [{ line: head.line, fault: 'names no column email' }] }
  }
  const columnFaults = names.flatMap((name, index) => {
    if (name === '')
      return [{ line: head.line, fault: `column ${index + 1} is none of ${columns.join(', ')}` }]
    return names.indexOf(name) < index
      ? [{ line: head.line, fault: `columns ${names.indexOf(name) + 1} and ${index + 1} are the same` }]
      : []
  })
  if (columnFaults.length > 0) return { users: [], faults: columnFaults }
  const isWhole = ({ cells }: Line) => cells.length === names.length
  return {
    users: rest.filter(isWhole).map((line) => userOf(line, names)),
    faults: rest
      .filter((line) => !isWhole(line))
      .map(({ line, cells }) => ({ line, fault: `has ${cells.length} cells instead of ${names.length}` })),
  }
}

function userOf({ line, cells }: Line, names: readonly string[]): ListedUser {
  const typed = names.flatMap((name, index) => (cells[index] ? [[name, cells[index]] as const] : []))
  const claimNames: readonly string[] = textClaims
  const { email = '', username, ...others } = Object.fromEntries(typed)
  const of = (isClaim: boolean) =>
    Object.fromEntries(Object.entries(others).filter(([name]) => claimNames.includes(name) === isClaim))
  return {
    line,
    email,
    ...(username !== undefined && { username }),
    claims: of(true),
    attributes: of(false),
  }
}

/** Splits CSV into lines of trimmed cells, without empty lines. A cell in quotes may contain line breaks. */
function parseLines(text: string, separator: string): { readonly lines: readonly Line[] } | LineFault {
  const lines: Line[] = []
  let cells: string[] = []
  let [line, begin, cell, quotedAt] = [1, 1, '', 0]
  const endLine = () => {
    cells.push(cell.trim())
    if (cells.some((text) => text !== '')) lines.push({ line: begin, cells })
    cells = []
    cell = ''
  }
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charAt(at)
    if (character === '\n') line += 1
    if (quotedAt > 0) {
      if (character !== '"') cell += character
      else if (text.charAt(at + 1) === '"') {
        cell += '"'
        at += 1
      } else quotedAt = 0
    } else if (character === '"' && cell.trim() === '') {
      cell = ''
      quotedAt = line
    } else if (character === separator) {
      cells.push(cell.trim())
      cell = ''
    } else if (character === '\n') {
      endLine()
      begin = line
    } else cell += character
  }
  if (quotedAt > 0) return { line: quotedAt, fault: 'opens a quotation mark that is not closed' }
  endLine()
  return { lines }
}
