/** Writes the generated files; `--check` compares instead, and fails if one is out of date. */
import { spawnSync } from 'node:child_process'
import { Argument } from 'commander'
import { scriptCommand } from './command.ts'

type Commands = readonly (readonly string[])[]

/** Each file, or group of files, with the commands that write and check it. */
const generated: Readonly<Record<string, { readonly write: Commands; readonly check: Commands }>> = {
  openapi: {
    ...bothOf('scripts/openapi.ts'),
    check: [
      ['node', 'scripts/openapi.ts', '--check'],
      ['redocly', 'lint', '--config', '.redocly.yaml', '--format=summary', 'openapi/openapi.json'],
      ['redocly', 'lint', '--config', '.redocly.yaml', '--format=summary', 'openapi/admin.json'],
    ],
  },
  migrations: {
    write: ['sqlite', 'postgres'].map((dialect) => [
      'drizzle-kit',
      'generate',
      '--config',
      `scripts/drizzle/${dialect}.config.ts`,
    ]),
    check: [['node', 'scripts/drizzle/check.ts']],
  },
  'config-table': bothOf('scripts/config-table.ts'),
  'config-example': bothOf('scripts/config-example.ts'),
  'files-schema': bothOf('scripts/files-schema.ts'),
  kubernetes: bothOf('scripts/chart/manifests.ts'),
  'apps-page': bothOf('scripts/apps-page.ts'),
  'common-passwords': bothOf('scripts/common-passwords.ts'),
  lockfile: bothOf('scripts/lockfile.ts'),
  // The tests check it, as it takes a run of every client.
  'misbehaving-issuers': { write: [['node', 'test/dev/issuers/write.ts']], check: [] },
}

const command = scriptCommand('generate', 'Write the files that follow from others.')
  .addArgument(
    new Argument('<name...>', 'which; all of them with --check')
      .choices(Object.keys(generated))
      .argOptional(),
  )
  .option('--check', 'compare instead, and fail on a difference')
  .parse()
const isCheck = command.opts<{ check?: true }>().check === true
const names = command.args.length > 0 ? command.args : Object.keys(generated)
if (!isCheck && command.args.length === 0) command.error('error: name what to write, or say --check')

const failed = names.filter((name) => {
  const commands = generated[name]?.[isCheck ? 'check' : 'write'] ?? []
  return !commands.every(([file = '', ...args]) => spawnSync(file, args, { stdio: 'inherit' }).status === 0)
})
if (failed.length > 0) process.stderr.write(`${isCheck ? 'out of date' : 'failed'}: ${failed.join(', ')}\n`)
process.exitCode = failed.length > 0 ? 1 : 0

function bothOf(script: string): { readonly write: Commands; readonly check: Commands } {
  return { write: [['node', script]], check: [['node', script, '--check']] }
}
