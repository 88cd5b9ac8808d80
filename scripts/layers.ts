/**
 * The layers of `src`: a room (a folder, or a file at the top) imports itself and the rooms below it. Part of
 * `npm run lint`; the rooms are those of the tree, so that a new one is either in the order or an error.
 */
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, matchesGlob } from 'node:path'

/** From the bottom to the top. */
export const order = [
  'domain',
  'system',
  'config',
  'storage',
  'keys',
  'clients',
  'outbound',
  'feature',
  'http',
  'users',
  'guard',
  'observability',
  'pages',
  'specs',
  'forward-auth',
  'admin',
  'features.ts',
  'settings',
  'doctor',
  'app',
  'dev',
  'prove',
  'cli',
  'main.ts',
  'one-file.ts',
]

/** What the order alone would allow: files, what they do not import, and why. */
const walls: readonly { files: string; not: readonly string[]; why: string }[] = [
  {
    files: 'src/guard/*.ts',
    not: ['src/!(domain|system|http|guard)/**', 'src/guard/protected-api/**'],
    why: 'other applications take the guard: it has domain, system and http',
  },
  {
    files: 'src/!(guard|app|storage)/**',
    not: ['src/guard/protected-api/**'],
    why: 'the built-in API is an application of its own',
  },
  {
    files: 'src/!(storage|dev|cli)/**',
    not: ['src/storage/open.ts', 'src/storage/{sqlite,postgres}/**'],
    why: 'whoever starts the server opens the store; the rest has its port, storage/store.ts',
  },
  {
    files: 'src/!(storage)/**',
    not: ['src/storage/{postgres/**,sqlite/!(backup).ts}'],
    why: 'storage/open.ts chooses the adapter',
  },
  {
    files: 'src/prove/**',
    not: ['src/!(domain|system|outbound|prove)/**'],
    why: 'it judges other servers, and knows this one only as they are known',
  },
  {
    files: 'src/{admin,dev,cli,doctor,settings}/**',
    not: ['src/specs/**', 'src/forward-auth/**'],
    why: 'what operators and developers use knows features by their list',
  },
]

/** Parts of a room that are neighbours: none of them imports another one. */
const neighbours = ['src/specs/*', 'src/pages/{account,links,sign-in}', 'src/storage/{sqlite,postgres}']

/** A file of `src`, and the text of it. */
export interface SourceFile {
  readonly path: string
  readonly text: string
}

/** Returns a line for each import that the layers forbid, and for each room that the order lacks or has in vain. */
export function violations(files: readonly SourceFile[]): readonly string[] {
  const rooms = new Set(files.map(({ path }) => roomOf(path)))
  const found = [
    ...[...rooms]
      .filter((room) => !order.includes(room))
      .map((room) => `src/${room} has no place in the order`),
    ...order.filter((room) => !rooms.has(room)).map((room) => `the order has ${room}, which src has not`),
  ]
  for (const { path, text } of files) {
    for (const target of importsOf(path, text)) {
      const why = whyNot(path, target)
      if (why !== undefined) found.push(`${path} imports ${target}: ${why}`)
    }
  }
  return found
}

function whyNot(path: string, target: string): string | undefined {
  if (order.indexOf(roomOf(target)) > order.indexOf(roomOf(path)))
    return `${roomOf(target)} is above ${roomOf(path)}`
  const wall = walls.find(
    ({ files, not }) => matchesGlob(path, files) && not.some((forbidden) => matchesGlob(target, forbidden)),
  )
  if (wall !== undefined) return wall.why
  const [own, other] = [partOf(path), partOf(target)]
  const isInRoom = roomOf(path) === roomOf(target)
  if (isInRoom && own !== undefined && other !== undefined && own !== other)
    return `${own} and ${other} are neighbours`
  return undefined
}

/** The part among neighbours that a file is in: `src/specs/rfc7009-revocation` of its files. */
function partOf(path: string): string | undefined {
  for (let folder = dirname(path); folder !== '.'; folder = dirname(folder)) {
    if (neighbours.some((pattern) => matchesGlob(folder, pattern))) return folder
  }
  return undefined
}

function roomOf(path: string): string {
  return path.split('/')[1] ?? ''
}

/** The files of `src` that a file imports, or whose types it extends. */
function importsOf(path: string, text: string): readonly string[] {
  const relative = /(?:\bfrom|\bimport|\bimport\(|\bdeclare module)\s*'(\.[^']+)'/g
  return [...text.matchAll(relative)]
    .map(([, target = '']) => join(dirname(path), target))
    .filter((target) => target.startsWith('src/'))
}

if (import.meta.main) {
  const files = globSync('src/**/*.ts').map((path) => ({ path, text: readFileSync(path, 'utf8') }))
  const found = violations(files)
  for (const line of found) process.stderr.write(`${line}\n`)
  process.stdout.write(
    `${files.length} files in ${order.length} rooms, ${found.length} imports against the layers\n`,
  )
  process.exitCode = found.length === 0 ? 0 : 1
}
