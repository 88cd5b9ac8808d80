import type { Command } from 'commander'
import type { Finding } from '../../domain/finding.ts'
import { CommandFailed } from '../failure.ts'
import { addServerFlags, type ServerFlags } from '../flags.ts'
import { printJson, visibleLines } from '../print.ts'

interface DoctorFlags extends ServerFlags {
  readonly dev?: true
  readonly json?: true
  readonly offline?: true
}

const help = `
Run it as the user of the server and with the same settings. The server may be running or stopped. It checks settings,
files, database, keys and clocks, then sends requests to the issuer over the network as a client does, and compares
the responses with these settings. It changes nothing. Each finding names the setting to change. The exit code is 1
if there is a problem.

Examples:
  lychgate doctor --config lychgate.yaml
  lychgate doctor --offline
  lychgate doctor --json | jq '.findings[] | select(.level == "problem")'
`

/** Adds `lychgate doctor`, which finds out what is wrong with a set-up. */
export function addDoctorCommand(program: Command): void {
  const command = program
    .command('doctor')
    .description('find out what is wrong with this set-up, and what to change')
    .option('--dev', 'apply the rules of lychgate dev')
    .option('--offline', 'do not use the network, except for the database')
    .addHelpText('after', help)
  addServerFlags(command).option('--json', 'print JSON').action(doctor)
}

async function doctor({ config: file, dev, json, offline, ...flags }: DoctorFlags): Promise<void> {
  const { examine } = await import('./examine.ts')
  const mode = dev ? 'dev' : 'serve'
  const findings = await examine({
    mode,
    flags: { ...flags },
    environment: process.env,
    file,
    offline: offline ?? false,
  })
  const count = (level: Finding['level']) => findings.filter((finding) => finding.level === level).length
  const counted = (name: 'warning' | 'problem') => `${count(name)} ${name}${count(name) === 1 ? '' : 's'}`
  const summary = `${count('ok')} ok, ${counted('warning')}, ${counted('problem')}, ${count('not checked')} not checked`
  const healthy = count('problem') === 0
  if (json) printJson({ healthy, summary, findings })
  else process.stdout.write(visibleLines(`${findings.map(linesOf).join('')}\n${summary}\n`))
  if (!healthy) throw new CommandFailed(`doctor: ${counted('problem')} found`)
}

function linesOf({ level, check, said, expected, found, change = [] }: Finding): string {
  const rows = [
    [level, `${check}: ${said}`],
    ...(expected === undefined ? [] : [['', `expected  ${expected}`]]),
    ...(found === undefined ? [] : [['', `found     ${found}`]]),
    ...change.map((line, index) => ['', `${index === 0 ? 'change' : '      '}    ${line}`]),
  ]
  // Texts from elsewhere may have line breaks.
  return rows
    .map(([name = '', text = '']) => `${name.padEnd(11)}  ${text.replaceAll(/\s*\n\s*/g, ' ')}\n`)
    .join('')
}
