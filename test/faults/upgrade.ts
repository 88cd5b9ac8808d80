/**
 * From the version before to the next one, and back: two nodes on one PostgreSQL under load, one after the other; and
 * one on SQLite, with the copy that the next version makes first. FAULTS_SEED repeats what the clients do.
 */
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { quickStartOption } from '../../scripts/quick-start.ts'
import { createDice } from '../fuzz/dice.ts'
import { ended, newFolder, run, spawnFile } from '../helpers/command.ts'
import { exchange, register } from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import { startProcess } from '../helpers/process.ts'
import { startRoundRobin } from '../helpers/round-robin.ts'
import { type OtherVersion, versionAfter, versionBefore } from '../helpers/versions.ts'
import { startPostgres } from '../storage/postgres-server.ts'
import { atLeast, check, checkSingleUse } from './load/ledger.ts'
import { createLoad } from './load/load.ts'
import { addOperatorClients } from './load/operator-clients.ts'

const seed = process.env['FAULTS_SEED'] ?? String(Date.now())
const kinds = ['registration', 'consent', 'code', 'token', 'rotation', 'revocation']
const before = versionBefore(t)

if (before !== undefined) {
  t.test(
    `from ${before.name} to the next version and back, nothing acknowledged is lost (seed ${seed})`,
    (t) => assertUpgrade(t, before, versionAfter(t, '-- compatible: it only adds\n')),
  )
  t.test('upgraded on SQLite, and back with the copy that the next version made first', (t) =>
    assertCopyFirst(t, before, versionAfter(t, '')),
  )
} else {
  t.comment('SKIPPED: this checkout has no history, and so no version before')
  t.not(process.env['CI'], 'true', 'nothing is skipped with CI=true')
}

/** Starts a development server of another version. */
function startVersion(
  t: Test,
  data: string,
  settings: Readonly<Record<string, unknown>>,
  { entry }: OtherVersion,
) {
  return startProcess(t, data, settings, (args, environment) => spawnVersion(entry, args, environment))
}

function spawnVersion(
  entry: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  before: readonly string[] = [],
) {
  const [file = '', ...rest] = [...before, process.execPath, entry, ...args]
  const node = { PATH: process.env['PATH'] ?? '', NODE_OPTIONS: quickStartOption }
  return spawnFile(file, rest, { ...environment, ...node })
}

async function assertUpgrade(t: Test, old: OtherVersion, young: OtherVersion): Promise<void> {
  const [data, port, postgres] = [newFolder(t), await freePort(), await startPostgres(t)]
  const [store, server] = [await postgres.createDatabase(), { issuer: `http://localhost:${port}` }]
  const settings = {
    LYCHGATE_STORE: store,
    LYCHGATE_ISSUER: server.issuer,
    LYCHGATE_LOG_LEVEL: 'fatal',
    // What the proxy has sent to a node while that one was taken out of its list still gets a response.
    LYCHGATE_DRAIN_SECONDS: '1',
  }
  const start = (version: OtherVersion) => startVersion(t, data, settings, version)
  const nodes = [await start(old), await start(old)]
  const portOf = (node: (typeof nodes)[number]) => Number(new URL(node.server.issuer).port)
  const ports = nodes.map(portOf)
  await startRoundRobin(t, port, ports)
  const load = createLoad(server, createDice(seed), await addOperatorClients(store, 24))
  const { ledger } = load
  /** Starts a node, and stops the oldest one after the requests that it has: what a rolling upgrade does. */
  const replaceOne = async (version: OtherVersion) => {
    const fresh = await start(version)
    nodes.push(fresh)
    ports.push(portOf(fresh))
    const [oldest] = nodes.splice(0, 1)
    ports.splice(0, 1)
    t.equal((await oldest?.stop('SIGTERM'))?.code, 0)
  }
  /** Serves until each kind of request was acknowledged more often, whatever nodes there are now. */
  const serve = async (what: string) => {
    const acknowledged = { ...ledger.acknowledged }
    const isMore = (kind: string) => (ledger.acknowledged[kind] ?? 0) > (acknowledged[kind] ?? 0) + 4
    while (!['code', 'token', 'rotation', 'revocation'].every(isMore)) await setTimeout(50)
    t.strictSame(ledger.faults, [], what)
  }

  load.begin()
  await serve('both of the version before')
  for (const what of ['one of each version', 'both of the next version']) {
    await replaceOne(young)
    await serve(what)
  }
  for (const what of ['one back', 'both back']) {
    await replaceOne(old)
    await serve(what)
  }
  await atLeast(ledger, kinds, 5)
  await load.end()
  t.strictSame([ledger.lost, ledger.unavailable], [0, 0], 'every request got a response, and none a 503')
  await check(server, ledger, ledger)
  t.strictSame(ledger.faults.splice(0), [], 'everything that was acknowledged by either version')
  await checkSingleUse(server, ledger)
  t.strictSame(ledger.faults, [], 'no code and no refresh token works twice')
  t.comment(JSON.stringify(ledger.acknowledged))
  const secret = readFileSync(`${data}/dev-secret`, 'utf8').trim()
  const environment = { LYCHGATE_STORE: store, LYCHGATE_ISSUER: server.issuer, LYCHGATE_SECRET: secret }
  const { stdout } = await run(['doctor', '--offline', '--data', data], { environment })
  t.match(stdout, /schema: a newer version added to it/, 'its tables are those of the next version')
}

async function assertCopyFirst(t: Test, old: OtherVersion, young: OtherVersion): Promise<void> {
  const [data, port] = [newFolder(t), await freePort()]
  const settings = {
    port,
    LYCHGATE_LOG_LEVEL: 'fatal',
    LYCHGATE_LIFETIMES_CODE_SECONDS: '600',
    LYCHGATE_LIFETIMES_REFRESH_REUSE_SECONDS: '600',
  }
  const server = { issuer: `http://localhost:${port}` }
  const { ledger, ...load } = createLoad(server, createDice(seed))
  const command = async (version: OtherVersion, ...args: readonly string[]) =>
    await ended(spawnVersion(version.entry, [...args, '--data', data]))
  const copies = () => readdirSync(data).filter((name) => /schema|unfinished/.test(name))

  let running = await startVersion(t, data, settings, old)
  load.begin()
  await atLeast(
    ledger,
    kinds.filter((kind) => kind !== 'consent'),
    5,
  ) // none of its clients is an operator's
  await load.end()
  t.equal((await running.stop('SIGKILL')).code, null)
  await assertNoSpace(t, data, young)
  t.strictSame(copies(), [], 'an upgrade without space leaves the database as it is')
  writeFileSync(`${data}/lychgate.db.unfinished-upgrade`, 'what a killed upgrade left')

  running = await startVersion(t, data, settings, young)
  const [name = '', ...others] = copies()
  t.match(name, /^lychgate\.db-schema-\d+$/)
  t.strictSame(others, [])
  t.equal(statSync(`${data}/${name}`).mode & 0o777, 0o600)
  await check(server, ledger, ledger)
  t.strictSame(ledger.faults, [], 'everything that the version before acknowledged')
  const added = await register(running.server)
  t.equal((await running.stop('SIGTERM')).code, 0)

  t.match(await command(old, 'user', 'list'), { code: 1, stderr: /made by a newer version[^\n]*\n$/ })
  const restored = await command(old, 'restore', `${data}/${name}`)
  t.equal(restored.code, 0, restored.stderr)
  running = await startVersion(t, data, settings, old)
  await check(server, ledger, ledger)
  t.strictSame(ledger.faults, [], 'everything that was acknowledged before the upgrade')
  await checkSingleUse(server, ledger)
  t.strictSame(ledger.faults, [], 'no code and no refresh token works twice')
  const later = await exchange(server, added, 'x')
  t.match(await later.json(), { error: 'invalid_client' }, 'what came after the upgrade is gone')
  t.equal((await running.stop('SIGTERM')).code, 0)
}

async function assertNoSpace(t: Test, data: string, { entry }: OtherVersion): Promise<void> {
  const command = ['user', 'list', '--data', data]
  const full = await ended(spawnVersion(entry, command, {}, ['prlimit', '--fsize=100000']))
  const line =
    /^lychgate: store: [^\n]* it was not upgraded, because it could not be copied first: [^\n]*\n$/m
  t.match(full, { code: 1, stderr: line })
}
