import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'

const text = Type.String({ minLength: 1 })

/** One row of the ledger: a clause of a document, how it is checked, and how this server implements it. */
const Clause = Type.Object(
  {
    id: Type.String({ pattern: '^[a-z][a-z0-9]*(-[A-Za-z0-9.]+){2,}$' }),
    spec: text,
    section: text,
    level: Type.Union(
      ['MUST', 'MUST NOT', 'SHOULD', 'SHOULD NOT', 'MAY'].map((level) => Type.Literal(level)),
    ),
    /** The party that the clause binds. */
    party: text,
    endpoint: text,
    /** 1: the feature is shipped, so the clause must be proven. 2: it belongs to a planned feature. */
    tier: Type.Union([Type.Literal(1), Type.Literal(2)]),
    statement: text,
    /** What a test of it observes; one that begins with `white-box` cannot be seen over HTTP. */
    check: text,
    /** Where documents disagree, and what this server does. */
    conflict: Type.Optional(text),
    settled: Type.Optional(text),
    /** Why this server does not implement it. */
    declined: Type.Optional(text),
    /** What it waits for. */
    planned: Type.Optional(text),
    /** The files that implement it, the deciding one first. */
    source: Type.Optional(Type.Array(text, { minItems: 1, maxItems: 3 })),
  },
  { additionalProperties: false },
)

export type Clause = Readonly<Static<typeof Clause>>

/** The clauses of one document. */
export interface Document {
  readonly name: string
  /** Path of its file below the root. */
  readonly file: string
  readonly clauses: readonly Clause[]
}

/** The ledger of this folder, with documents that are mostly planned last, and its problems. */
export function readLedger(root: string): {
  readonly documents: readonly Document[]
  readonly problems: readonly string[]
} {
  const folder = 'test/requirements'
  const files = existsSync(join(root, folder))
    ? readdirSync(join(root, folder)).filter((file) => file.endsWith('.jsonl'))
    : []
  const problems: string[] = files.length === 0 ? [`${folder}: there are no clauses`] : []
  const documents = files.sort().map((name) => {
    const file = `${folder}/${name}`
    const clauses = readClauses(root, file, problems)
    return { name: clauses[0]?.spec ?? name, file, clauses }
  })
  const isLater = ({ clauses }: Document) =>
    2 * clauses.filter(({ planned }) => planned !== undefined).length > clauses.length
  const ordered = [...documents.filter((one) => !isLater(one)), ...documents.filter(isLater)]
  return { documents: ordered, problems: [...problems, ...judgeRows(root, ordered)] }
}

function readClauses(root: string, file: string, problems: string[]): readonly Clause[] {
  const lines = readFileSync(join(root, file), 'utf8').split('\n')
  return lines.flatMap((line, index) => {
    if (line === '') return []
    const row = parse(line)
    const wrong = Value.Errors(Clause, row).First()
    if (wrong === undefined) return [row as Clause] // has the form of one
    problems.push(`${file}:${index + 1}: ${wrong.path.slice(1) || 'the row'}: ${wrong.message}`)
    return []
  })
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

function judgeRows(root: string, documents: readonly Document[]): readonly string[] {
  const seen = new Set<string>()
  return documents.flatMap(({ name, file, clauses }) =>
    clauses.flatMap(({ id, spec, declined, planned, source = [] }) => {
      const isRepeated = seen.has(id)
      seen.add(id)
      return [
        isRepeated && `${id}: is in the ledger twice`,
        spec !== name && `${id}: is of another document than the rest of ${file}`,
        declined !== undefined && planned !== undefined && `${id}: is both declined and planned`,
        ...source.map((path) => !existsSync(join(root, path)) && `${id}: there is no ${path}`),
      ].filter((problem) => problem !== false)
    }),
  )
}
