import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { stringify } from 'yaml'
import { declared } from '../../features.ts'
import { CommandFailed, codeOf } from '../failure.ts'
import { addOperatorFlags, type OperatorFlags } from '../flags.ts'
import { printJson, visible } from '../print.ts'
import { withTarget } from './apply.ts'
import { addServerFlags, type ServerFlags, serverHelp } from './open-target.ts'
import type { Wanted } from './read.ts'
import { filesSchema } from './schema.ts'
import { entriesOf } from './state.ts'

const help = `
Writes users, groups, clients and upstreams as lychgate apply reads them: groups.yaml, users.yaml, clients.yaml and
upstreams.yaml, with a JSON Schema that editors complete and check them with. Passwords and secrets are not in them, and neither are clients that
registered themselves. Nothing that exists is replaced.

Examples:
  lychgate export
  lychgate export --to config
  lychgate export --schema > lychgate.schema.json
  lychgate export --to config --server https://id.example.com --token-file token
${serverHelp}`

interface ExportFlags extends OperatorFlags, ServerFlags {
  readonly to?: string
  readonly schema?: true
}

/** Adds `lychgate export`. */
export function addExportCommand(program: Command): void {
  const command = program
    .command('export')
    .description('write users, groups, clients and upstreams as files for lychgate apply')
    .option('--to <folder>', 'write files into this folder instead of printing one')
    .option('--schema', 'print the JSON Schema of these files')
  addOperatorFlags(addServerFlags(command), help).action(exportAll)
}

/** The name of the schema next to the files. */
const schemaName = 'lychgate.schema.json'
/** Tells editors where the schema is. */
const firstLine = `# yaml-language-server: $schema=${schemaName}\n`

async function exportAll({ to, schema, ...flags }: ExportFlags): Promise<void> {
  if (schema) return printJson(filesSchema(declared))
  const read = (entries?: Wanted) =>
    withTarget(flags, { ...(entries && { wanted: entries }) }, async (target) =>
      entriesOf(await target.readState(entries)),
    )
  const entries = await read().catch(async (error: unknown) => {
    // A client that could export before there were upstreams has no scope for them.
    if (!['invalid_scope', 'insufficient_scope'].includes(codeOf(error) ?? '')) throw error
    // No file may say that there are none: `apply --prune` would delete them.
    const { upstreams: _, ...others } = await read({ groups: [], users: [], clients: [], files: {} })
    process.stderr.write('upstreams are left out: the token has no scope admin:upstreams:read\n')
    return others
  })
  if (to === undefined) {
    if (flags.json) printJson(entries)
    else process.stdout.write(firstLine + yaml(entries))
    return
  }
  mkdirSync(to, { recursive: true, mode: 0o700 })
  for (const [kind, own] of Object.entries(entries))
    writeNew(to, `${kind}.yaml`, firstLine + yaml({ [kind]: own }))
  writeNew(to, schemaName, `${JSON.stringify(filesSchema(declared), undefined, 2)}\n`)
}

function yaml(value: unknown): string {
  return stringify(value, { lineWidth: 0 })
}

function writeNew(folder: string, name: string, content: string): void {
  const path = join(folder, name)
  try {
    // What users are called is for the operator only.
    writeFileSync(path, content, { flag: 'wx', mode: 0o600 })
  } catch (error) {
    const isThere = error instanceof Error && 'code' in error && error.code === 'EEXIST'
    throw isThere ? new CommandFailed(`${path} exists; name another folder`) : error
  }
  process.stdout.write(`${visible(path)}\n`)
}
