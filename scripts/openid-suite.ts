/**
 * The OpenID Foundation's conformance suite, given as its built jar, with this checkout on this computer: starts both,
 * runs plans with every step of a browser, prints how each module ended, and writes the rows of docs/conformance.md.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { isoInstant } from '../src/system/system.ts'
import { readCount, scriptCommand } from './command.ts'
import { runPlans } from './openid-suite/all-plans.ts'
import { plansOf } from './openid-suite/plans.ts'
import { isUnexpected, type PlanResult, tableOf, unexplained, withResults } from './openid-suite/results.ts'
import { CannotRun, findJava, startSuite } from './openid-suite/suite.ts'
import { startTlsFront } from './openid-suite/tls-front.ts'

interface Options {
  readonly only: readonly string[]
  readonly port: number
  readonly folder?: string
}

const root = fileURLToPath(new URL('..', import.meta.url))
/** The page is generated with the text of the first file (scripts/requirements.ts). */
const pages = ['test/requirements/openid-suite.md', 'docs/conformance.md'].map((page) => join(root, page))
const names = plansOf('').map(({ name }) => name)
const say = (line: string) => process.stdout.write(`${line}\n`)

const command = scriptCommand(
  'openid-suite',
  'Runs the conformance suite of the OpenID Foundation, and writes the results into docs/conformance.md.',
)
  .argument('[jar]', 'the built jar of the suite')
  .argument('[plans...]', `of ${names.join(', ')}; all if none is named`)
  .option('--only <modules...>', 'only these modules', [])
  .option('--port <number>', 'the first of five free ports', readCount, 9520)
  .option('--folder <path>', 'for logs and configurations; a new one if left out')
  .parse()

try {
  process.exitCode = await run(command.args, command.opts<Options>())
} catch (error) {
  if (!(error instanceof CannotRun)) throw error
  process.stderr.write(`openid-suite: ${error.message}\n`)
  process.exitCode = 64
}

async function run([jar, ...plans]: readonly string[], options: Options): Promise<0 | 1> {
  const java = findJava(jar)
  const unknown = plans.find((plan) => !names.includes(plan))
  if (unknown !== undefined) throw new CannotRun(`there is no plan ${unknown}, but ${names.join(', ')}`)
  const { port, only } = options
  const folder = resolve(options.folder ?? mkdtempSync(join(tmpdir(), 'lychgate-suite-')))
  mkdirSync(folder, { recursive: true })
  say(`logs in ${folder}`)
  const certificate = makeCertificate(folder)
  const cert = readFileSync(certificate, 'utf8')
  const credentials = { cert, key: readFileSync(join(folder, 'key.pem'), 'utf8') }
  setDefaultCACertificates([...getCACertificates('default'), cert])
  const suite = await startSuite(java, resolve(jar ?? ''), port, folder, credentials)
  try {
    const [tls, plain] = [port + 3, port + 4]
    const stopFront = await startTlsFront(credentials, tls, plain)
    const place = { suite, folder, certificate, issuer: `https://127.0.0.1:${tls}`, port: plain, say }
    const results = await runPlans(plans, only, place)
    stopFront()
    return report(results, suite.version, only.length === 0)
  } finally {
    await suite.stop()
  }
}

/** A certificate for the suite and for Lychgate: the names of their hosts differ, so that their cookies are apart. */
function makeCertificate(folder: string): string {
  const certificate = join(folder, 'cert.pem')
  const files = ['-keyout', join(folder, 'key.pem'), '-out', certificate]
  const hosts = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1']
  const newKey = ['-newkey', 'rsa:2048', '-nodes', '-days', '30']
  execFileSync('openssl', ['req', '-x509', ...newKey, ...files, ...hosts], { stdio: 'pipe' })
  return certificate
}

/** Prints the table, and writes the rows of whole plans into the page. */
function report(results: readonly PlanResult[], version: string, areWhole: boolean): 0 | 1 {
  const git = (...args: readonly string[]) =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
  const commit = git('describe', '--always', '--abbrev=8', '--dirty', '--exclude=*')
  const run = { version, date: isoInstant(Math.floor(Date.now() / 1000)).slice(0, 10), commit }
  say(`\n${tableOf(run, results)}`)
  if (areWhole)
    for (const page of pages) writeFileSync(page, withResults(readFileSync(page, 'utf8'), run, results))
  const silent = unexplained(readFileSync(pages[0] ?? '', 'utf8'), results)
  for (const module of silent) say(`${module} did not pass, and ${pages[0]} does not say why`)
  const isFine = results.every(({ plan, modules }) => modules.every((module) => !isUnexpected(plan, module)))
  return isFine && silent.length === 0 ? 0 : 1
}
