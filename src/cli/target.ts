import { type Command, InvalidArgumentError } from 'commander'
import { WrongUsage } from './failure.ts'
import { addReportOptions, type ReportFlags } from './reports/write.ts'

/** How a server is asked, and what is shown of it. */
export interface TargetFlags extends ReportFlags {
  readonly client?: readonly string[]
  readonly initialAccessToken?: string
  readonly username?: string
  readonly passwordFile?: string
  readonly forms?: string
  readonly allowHost?: readonly string[]
  readonly iOwnThis?: true
  readonly maxRequests: number
  readonly rate?: number
  readonly report?: string
  readonly json?: true
  readonly verbose?: true
}

/** Adds the options about the server that is asked, its client and its user, and the reports. */
export function addTargetOptions(command: Command): Command {
  command
    .option(
      '--client <file...>',
      'JSON of a client to use, as its registration returned it; jwks may have a private key',
    )
    .option('--initial-access-token <token>', 'register clients with this token')
    .option('--username <name>', 'the user who signs in')
    .option('--password-file <file>', 'the password of that user, in a file')
    .option('--forms <file>', 'JSON with the names of the fields of the sign-in and consent pages')
    .option('--allow-host <host...>', 'send requests to these hosts, too')
    .option('--i-own-this', 'the server is yours, and may be on the internet')
    .option('--max-requests <number>', 'send at most so many requests', parseCount, 10_000)
    .option('--rate <number>', 'requests in a second (10; no limit on loopback)', parseCount)
    .option('--report <file>', 'write the report to this file as JSON')
  return addReportOptions(command)
    .option('--json', 'print JSON')
    .option('--verbose', 'show clauses that passed, too')
}

/** @throws {WrongUsage} */
export function assertIssuer(issuer: string): void {
  if (!/^https?:$/.test(URL.parse(issuer)?.protocol ?? ''))
    throw new WrongUsage('the issuer must be an http or https URL, such as http://localhost:9400')
}

function parseCount(text: string): number {
  if (/^\d{1,7}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It must be a number.')
}
