/** The formats of a report: JUnit, SARIF, a page and a badge. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { start } from '../../src/dev/start.ts'
import { newFolder, run } from '../helpers/command.ts'

const server = await start()
t.teardown(server.stop)
const folder = newFolder(t)
const fileOf = (format: string) => join(folder, `report.${format}`)
const read = (format: string) => readFileSync(fileOf(format), 'utf8')
const formats = ['junit', 'sarif', 'html', 'badge']

// The slash makes issuer another one than in the metadata: one clause fails, one passes, one is not applicable.
const only = '^(rfc8414-3.3-issuer-identical|rfc8414-3.2-ok-json|rfc8414-2-grant-types-default)$'
const flags = formats.flatMap((format) => [`--${format}`, fileOf(format)])
const { code, stderr } = await run(['prove', `${server.issuer}/`, '--only', only, ...flags])

t.test('each format is written, also when a clause fails', async (t) => {
  t.equal(code, 1, stderr)
  t.ok(formats.every((format) => existsSync(fileOf(format))))
})

t.test('JUnit has a case for each check, with the clause that failed', async (t) => {
  const xml = read('junit')
  t.match(
    xml,
    /^<\?xml version="1.0" encoding="UTF-8"\?>\n<testsuites>\n {2}<testsuite name="[^"]+" tests="3" /,
  )
  t.match(xml, / tests="3" failures="1" errors="0" skipped="0" time="\d+\.\d{3}">/)
  t.equal(xml.match(/<testcase classname="RFC 8414 §[\d.]+" name="rfc8414-[^"]+" time="[\d.]+"/g)?.length, 3)
  t.match(xml, /<failure message="issuer is [^"<>]+">[^<>]+<\/failure><\/testcase>/)
  t.match(xml, 'sent: curl')
  t.strictSame(openElements(xml), [])
})

t.test('SARIF has a rule and a result for each check', async (t) => {
  const { version, runs } = JSON.parse(read('sarif'))
  t.equal(version, '2.1.0')
  const [{ tool, results }] = runs
  t.equal(runs.length, 1)
  t.equal(tool.driver.name, 'lychgate prove')
  t.strictSame(
    results.map(({ ruleIndex }: { ruleIndex: number }) => tool.driver.rules[ruleIndex].id),
    results.map(({ ruleId }: { ruleId: string }) => ruleId),
  )
  const failed = results.filter(({ kind }: { kind: string }) => kind === 'fail')
  t.match(failed, [{ ruleId: 'rfc8414-3.3-issuer-identical', level: 'error' }])
  t.equal(failed.length, 1)
  // SARIF 2.1.0 §3.27.10: a level other than none belongs to a failure.
  for (const { kind, level } of results) t.equal(level === 'none', kind !== 'fail')
  t.equal(failed[0].locations[0].physicalLocation.artifactLocation.uri, `${server.issuer}/`)
})

t.test('the page loads nothing, has no script, and shows what failed first', async (t) => {
  const page = read('html')
  t.match(page, /^<!doctype html>/)
  t.notMatch(page, /<script|<link|<img|@import|url\(|\son\w+=|\ssrc=/i)
  t.match(page, 'prefers-color-scheme: dark')
  const verdicts = [...page.matchAll(/<details class="(\w+)"( open)?>/g)].map(([, name, open]) => [
    name,
    open,
  ])
  t.strictSame(verdicts, [
    ['fail', ' open'],
    ['pass', undefined],
    ['pass', undefined],
  ])
  t.match(page, 'https://www.rfc-editor.org/rfc/rfc8414.html#section-3.3')
})

t.test('the badge counts what was judged, and says it to screen readers', async (t) => {
  const svg = read('badge')
  t.match(svg, / aria-label="all: 2 of 3 clauses">/)
  t.match(svg, /<title>[^<]+, all: 2 of 3 clauses<\/title>/)
  t.strictSame(openElements(svg), [])
})

/** Reads elements as XML does, and returns those that are not closed. */
function openElements(xml: string): readonly string[] {
  const open: string[] = []
  for (const [, end, name = '', self] of xml.matchAll(/<(\/?)([a-z]+)(?:\s[\w:-]+="[^"<]*")*\s*(\/?)>/g)) {
    if (end === '/') {
      if (open.pop() !== name) return [`</${name}>`]
    } else if (self !== '/') open.push(name)
  }
  return open
}
