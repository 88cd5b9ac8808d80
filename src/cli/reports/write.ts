import { writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import { jsonText } from '../print.ts'
import { badge } from './badge.ts'
import { html } from './html.ts'
import { junit } from './junit.ts'
import type { ClauseReport } from './report.ts'
import { sarif } from './sarif.ts'

/** Where to write which format. */
export interface ReportFlags {
  readonly junit?: string
  readonly sarif?: string
  readonly html?: string
  readonly badge?: string
}

/** Adds the options of the formats. */
export function addReportOptions(command: Command): Command {
  return command
    .option('--junit <file>', 'write JUnit XML')
    .option('--sarif <file>', 'write SARIF 2.1.0')
    .option('--html <file>', 'write a page to publish')
    .option('--badge <file>', 'write an SVG image with the result')
}

export function writeReports(flags: ReportFlags, report: ClauseReport): void {
  if (flags.junit !== undefined) writeFileSync(flags.junit, junit(report))
  if (flags.sarif !== undefined) writeFileSync(flags.sarif, `${jsonText(sarif(report), 2)}\n`)
  if (flags.html !== undefined) writeFileSync(flags.html, html(report))
  if (flags.badge !== undefined) writeFileSync(flags.badge, badge(report))
}
