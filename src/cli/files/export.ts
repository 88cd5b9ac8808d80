import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { stringify } from 'yaml'
import { declared } from '../../features.ts'
import { CommandFailed } from '../failure.ts'
import { addOperatorFlags, type OperatorFlags } from '../flags.ts'
import { printJson, visible } from '../print.ts'
import { withTarget } from './apply.ts'
import { addServerFlags, type ServerFlags, serverHelp } from './open-target.ts'
import { filesSchema, kinds } from './schema.ts'
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
  await withTarget(flags, {}, async (target) => {
    const entries = entriesOf(await target.readState())
    if (to === undefined) {
      if (flags.json) printJson(entries)
      else process.stdout.write(firstLine + yaml(entries))
      return
    }
    mkdirSync(to, { recursive: true, mode: 0o700 })
    for (const kind of kinds) writeNew(to, `${kind}.yaml`, firstLine + yaml({ [kind]: entries[kind] }))
    writeNew(to, schemaName, `${JSON.stringify(filesSchema(declared), undefined, 2)}\n`)
  })
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
