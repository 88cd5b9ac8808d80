import { spawn, spawnSync } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Credentials, startTlsFront } from './tls-front.ts'

/** What is missing to run the suite; the message is a line for the operator. */
export class CannotRun extends Error {}

/** The first release of Java that the suite may be built for. */
const oldestJava = 21

/**
 * Returns the Java to run a jar with: that of JAVA_HOME, or of PATH.
 * @throws {CannotRun}
 */
export function findJava(jar: string | undefined, environment: NodeJS.ProcessEnv = process.env): string {
  if (jar === undefined)
    throw new CannotRun('name the jar of the conformance suite: npm run openid-suite -- JAR')
  if (!existsSync(jar)) throw new CannotRun(`there is no jar at ${jar}`)
  const home = environment['JAVA_HOME'] ?? ''
  const java = home === '' ? 'java' : join(home, 'bin/java')
  const { stderr = '', error } = spawnSync(java, ['-version'], { encoding: 'utf8', env: environment })
  const version = Number(/version "(\d+)/.exec(stderr)?.[1])
  if (error !== undefined || Number.isNaN(version))
    throw new CannotRun(`the suite needs Java ${oldestJava} or newer: none in JAVA_HOME or PATH`)
  if (version < oldestJava)
    throw new CannotRun(`the suite needs Java ${oldestJava} or newer: JAVA_HOME or PATH has ${version}`)
  return java
}

/** A process that ends with the run, and writes to a file. */
export interface Running {
  readonly log: string
  /** Whether it has ended by itself. */
  hasEnded(): boolean
  stop(): Promise<void>
}

export function startProcess(
  command: readonly [string, ...string[]],
  log: string,
  options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {},
): Running {
  const [file, ...args] = command
  const output = openSync(log, 'a')
  const child = spawn(file, args, { ...options, stdio: ['ignore', output, output] })
  closeSync(output)
  child.on('error', (error) => writeFileSync(log, `${error.message}\n`, { flag: 'a' }))
  let isOver = false
  const end = new Promise<void>((resolve) => {
    const finish = () => {
      isOver = true
      resolve()
    }
    child.once('exit', finish)
    child.once('error', finish)
  })
  return {
    log,
    hasEnded: () => isOver,
    async stop() {
      child.kill('SIGTERM')
      await end
    },
  }
}

/** Waits until a process responds. @throws {Error} with the end of its log. */
export async function untilReady(url: string, seconds: number, process: Running): Promise<void> {
  const deadline = Date.now() + seconds * 1000
  while ((await fetch(url).catch(() => undefined))?.ok !== true) {
    if (process.hasEnded() || Date.now() > deadline) {
      const last = readFileSync(process.log, 'utf8').trimEnd().split('\n').slice(-20).join('\n')
      throw new Error(`${url} does not respond; the end of ${process.log}:\n${last}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}

export interface Suite {
  /** The address of its pages, callbacks and issuers. */
  readonly url: string
  /** The address of its API. */
  readonly api: string
  /** Its version and commit. */
  readonly version: string
  stop(): Promise<void>
}

/** Starts the suite with a database in memory, behind TLS. The first three ports from `port` are used. */
export async function startSuite(
  java: string,
  jar: string,
  port: number,
  folder: string,
  credentials: Credentials,
): Promise<Suite> {
  const [databasePort, plainPort] = [port + 1, port + 2]
  const log = (name: string) => join(folder, `${name}.log`)
  const database = startProcess(
    [
      java,
      '-cp',
      join(databaseLibraries(folder), '*'),
      join(databaseFolder, 'SuiteDatabase.java'),
      `${databasePort}`,
    ],
    log('database'),
  )
  // It looks for no other host than this computer.
  const hosts = join(folder, 'hosts')
  writeFileSync(hosts, '127.0.0.1 localhost\n')
  const url = `https://localhost:${port}`
  const mongodb = `mongodb://127.0.0.1:${databasePort}/suite`
  const settings = {
    'server.address': '127.0.0.1',
    'server.port': plainPort,
    'fintechlabs.base_url': url,
    'fintechlabs.base_mtls_url': url,
    // No one signs in to it.
    'fintechlabs.devmode': true,
    'fintechlabs.startredir': false,
    'fintechlabs.show_external_ip_address': false,
    'spring.mongodb.uri': mongodb,
    'spring.data.mongodb.uri': mongodb,
    'openid.mongodb.targetFeatureCompatibilityVersion': '',
  }
  const suite = startProcess(
    [
      java,
      '-Xmx3g',
      `-Djdk.net.hosts.file=${hosts}`,
      '-jar',
      jar,
      ...Object.entries(settings).map(([name, value]) => `--${name}=${value}`),
    ],
    log('suite'),
  )
  const stopFront = await startTlsFront(credentials, port, plainPort)
  const stop = async () => {
    stopFront()
    await suite.stop()
    await database.stop()
  }
  try {
    // It rejects requests without TLS, also those on this computer.
    const api = `${url}/api/`
    await untilReady(`${api}runner/available`, 600, suite)
    const { version, revision } = (await (await fetch(`${api}server`)).json()) as Record<string, string>
    return { url, api, version: `${version} (${revision})`, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

const databaseFolder = fileURLToPath(new URL('mongodb', import.meta.url))

/** Fetches the libraries of the database with Maven, unless the folder has them of another run. @throws {CannotRun} */
function databaseLibraries(folder: string): string {
  const libraries = join(folder, 'database')
  if (existsSync(libraries)) return libraries
  const goal = ['dependency:copy-dependencies', `-DoutputDirectory=${libraries}`]
  const maven = spawnSync('mvn', ['-B', '-q', '-f', join(databaseFolder, 'pom.xml'), ...goal], {
    encoding: 'utf8',
  })
  if (maven.error !== undefined) throw new CannotRun('the database of the suite needs Maven: no mvn in PATH')
  if (maven.status !== 0)
    throw new CannotRun(`mvn could not fetch the database of the suite: ${maven.stdout.split('\n', 1)[0]}`)
  return libraries
}
