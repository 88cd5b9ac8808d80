import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { join, relative } from 'node:path'

/*
 * Fails if the schema and its migrations differ: `drizzle-kit generate` must have nothing to add. It works on a copy,
 * so the tree is unchanged.
 */
const dialects = [
  { dialect: 'sqlite', folder: 'sqlite' },
  { dialect: 'postgresql', folder: 'postgres' },
] as const

const root = join(import.meta.dirname, '../..')

/** What drizzle-kit would change, or undefined if schema and migrations agree. */
function drift(dialect: string, folder: string): string | undefined {
  // Inside the project, because drizzle-kit takes its paths from there.
  const copy = mkdtempSync(join(root, 'drizzle', '.check-'))
  try {
    cpSync(join(root, 'drizzle', folder), copy, { recursive: true })
    const options = [`--dialect=${dialect}`, `--schema=./src/storage/${folder}/schema.ts`]
    const run = spawnSync('drizzle-kit', ['generate', ...options, `--out=./${relative(root, copy)}`], {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    // Only this output is a success: without a terminal to ask about a rename it stops, writes nothing, and exits with
    // 0.
    if (run.status === 0 && run.stdout.includes('No schema changes')) return undefined
    return `${run.stdout ?? ''}${run.stderr ?? ''}${run.error ?? ''}`
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}

for (const { dialect, folder } of dialects) {
  const changes = drift(dialect, folder)
  console.log(`${folder}: ${changes === undefined ? 'schema and migrations agree' : `drift\n${changes}`}`)
  if (changes !== undefined) process.exitCode = 1
}
