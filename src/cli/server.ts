import type { Command } from 'commander'
import type { DevFlags } from './dev.ts'
import { addRecordCommand } from './dev-record.ts'
import { addReportCommand } from './dev-report.ts'
import { addZooCommand } from './dev-zoo.ts'
import { addServerFlags, type ServeFlags } from './flags.ts'

const devExamples = `
Examples:
  lychgate dev --port 0                              a free port; the issuer is printed
  lychgate dev --users users.yaml
  lychgate dev --time +31d                           the server of a month from now
  lychgate dev --auto-sign-in alice --auto-consent   no page is shown
  lychgate dev report                                which clients were fooled by a misbehaving issuer
  lychgate dev zoo gitea --against http://localhost:9400   does a real client get through?
  curl -s localhost:9400/_dev/clock -H 'content-type: application/json' -d '{"advance":"1h"}'

The routes below /_dev change the time, issue tokens, drop responses and more: docs/development.md.
`

/** Adds `lychgate dev`: a development server. */
export function addDevCommand(program: Command): void {
  const dev = program
    .command('dev')
    .description('start a development server on localhost, with two users to sign in as')
  addServerFlags(dev)
    .option('--users <file>', 'YAML file with users, instead of alice and bob')
    .option('--time <when>', 'the time at the start: 2027-01-01T00:00:00Z, or +31d')
    .option('--auto-sign-in <user>', 'sign in this user without a page')
    .option('--auto-consent', 'grant every requested scope without a page')
    .addHelpText('after', devExamples)
    .action(async (flags: DevFlags) => {
      endWithNpm(process.env)
      await (await import('./dev.ts')).dev(flags)
    })
  addReportCommand(dev)
  addRecordCommand(dev)
  addZooCommand(dev)
}

/** Adds `lychgate serve`: a server for real users. */
export function addServeCommand(program: Command): void {
  const serve = program
    .command('serve')
    .description('start the server for real users; requires LYCHGATE_SECRET')
  addServerFlags(serve)
    .option('--workers <number>', 'processes that share the load, or auto (LYCHGATE_WORKERS)')
    .option('--log-format <format>', 'json, or text for reading (LYCHGATE_LOG_FORMAT)')
    .action(async (flags: ServeFlags) => {
      endWithNpm(process.env)
      await (await import('./serve.ts')).serve(flags)
    })
}

/** The process that started this one, at the time this module was loaded. */
const parent = process.ppid

/**
 * Ends this process as SIGTERM does once the shell of `npm start` has gone. npm passes a signal to that shell only, and
 * the shell does not pass it on: the server would keep its port. Where the script does more than start Lychgate, its
 * shell may end first on purpose, and nothing is watched.
 */
function endWithNpm(environment: Readonly<Record<string, string | undefined>>): void {
  if (!isOnlyCommandOfNpm(environment)) return
  const watch = setInterval(() => {
    if (process.ppid === parent && isRunning(parent)) return
    clearInterval(watch)
    process.kill(process.pid, 'SIGTERM')
  }, 250)
  watch.unref()
}

/** Returns whether an npm script, or `npm exec`, runs one command and that is ours. */
export function isOnlyCommandOfNpm(environment: Readonly<Record<string, string | undefined>>): boolean {
  const { npm_lifecycle_event: event, npm_lifecycle_script: script = '' } = environment
  return event !== undefined && /^(node +)?\S*\blychgate\b[^\n;&|()`$]*$/.test(script)
}

/** Windows keeps the number of a parent that has ended. */
function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
