import type { Command } from 'commander'
import { CommandFailed } from '../failure.ts'
import { addServerFlags, type ServerFlags } from '../flags.ts'
import { printJson, visibleLines } from '../print.ts'
import type { Finding } from './finding.ts'

interface DoctorFlags extends ServerFlags {
  readonly dev?: true
  readonly json?: true
  readonly offline?: true
}

const help = `
Run it with the settings and as the user of the server, while it runs or while it does not. It looks at settings,
files, database, keys and clocks, then asks the issuer over the network as a client does and compares what arrives
with what these settings say. Nothing is changed. Each finding names the setting to change. It ends with 1
when there is a problem.

Examples:
  lychgate doctor --config lychgate.yaml
  lychgate doctor --offline
  lychgate doctor --json | jq '.findings[] | select(.level == "problem")'
`

/** Adds `lychgate doctor`: what is wrong with this set-up, and the line to change. */
export function addDoctorCommand(program: Command): void {
  const command = program
    .command('doctor')
    .description('what is wrong with this set-up, each finding with the line to change')
    .option('--dev', 'by the rules of lychgate dev')
    .option('--offline', 'skip the network; the database is still looked into')
    .addHelpText('after', help)
  addServerFlags(command).option('--json', 'print JSON').action(doctor)
}

async function doctor({ config: file, dev, json, offline, ...flags }: DoctorFlags): Promise<void> {
  const { examine } = await import('./examine.ts')
  const findings = await examine({
    mode: dev ? 'dev' : 'serve',
    flags: { ...flags },
    environment: process.env,
    file,
    offline: offline ?? false,
  })
  const count = (level: Finding['level']) => findings.filter((finding) => finding.level === level).length
  const [warnings, problems] = [counted(count('warning'), 'warning'), counted(count('problem'), 'problem')]
  const summary = `${count('ok')} ok, ${warnings}, ${problems}, ${count('not checked')} not checked`
  const healthy = count('problem') === 0
  if (json) printJson({ healthy, summary, findings })
  else {
    for (const finding of findings) process.stdout.write(visibleLines(linesOf(finding)))
    process.stdout.write(`\n${summary}\n`)
  }
  if (!healthy) throw new CommandFailed(`doctor: ${problems} found`)
}

function counted(count: number, name: string): string {
  return `${count} ${name}${count === 1 ? '' : 's'}`
}

function linesOf({ level, check, said, expected, found, change = [] }: Finding): string {
  const details = [
    ['expected', expected] as const,
    ['found', found] as const,
    ...change.map((line, index) => [index === 0 ? 'change' : '', line] as const),
  ].filter(([, text]) => text !== undefined)
  const lines = details.map(([name, text]) => `             ${name.padEnd(8)}  ${oneLine(text ?? '')}`)
  return `${[`${level.padEnd(11)}  ${check}: ${oneLine(said)}`, ...lines].join('\n')}\n`
}

/** What came from elsewhere may have line breaks. */
function oneLine(text: string): string {
  return text.replaceAll(/\s*\n\s*/g, ' ')
}
