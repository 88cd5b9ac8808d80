/**
 * Another process locks the database of a busy server. test/process/health.test.ts tests the response to one request.
 */
import { setTimeout } from 'node:timers/promises'
import Database from 'better-sqlite3'
import t from 'tap'
import { newFolder } from '../helpers/command.ts'
import { callApi, obtainTokens, refresh, register, type Tokens } from '../helpers/flow.ts'
import { devAlice, startProcess } from '../helpers/process.ts'

t.test('while another process writes, writes are 503 and everything else works', async (t) => {
  const data = newFolder(t)
  const { server } = await startProcess(t, data, { LYCHGATE_LOG_LEVEL: 'fatal' })
  const client = await register(server)
  const { access_token: access, refresh_token: token } = await obtainTokens(server, client, {
    user: devAlice,
  })
  const other = new Database(`${data}/lychgate.db`)
  t.teardown(() => other.close())
  other.exec('begin immediate')

  let isOver = false
  const [writes, reads]: [string[], string[]] = [[], []]
  let longestRead = 0
  const request = async (responses: string[], ask: () => Promise<Response>) => {
    const began = performance.now()
    const response = await ask()
    await response.text()
    responses.push(`${response.status} ${response.headers.get('retry-after')}`)
    return performance.now() - began
  }
  const until = async (ask: () => Promise<Response>) => {
    while (!isOver) longestRead = Math.max(longestRead, await request(reads, ask))
  }
  const readers = Promise.all([
    until(() => callApi(server, '/api/oauth/userinfo', access)),
    until(() => fetch(`${server.issuer}/.well-known/openid-configuration`)),
  ])
  for (let round = 0; round < 3; round += 1) {
    await Promise.all(Array.from({ length: 8 }, () => request(writes, () => refresh(server, client, token))))
  }

  // A write waits half a second, and if the process waited with it, so would each read. One write among many is enough:
  // the machine may stand still during the others.
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round < 60 && least >= 250; round += 1) {
    longestRead = 0
    const waited = await request(writes, () => refresh(server, client, token))
    if (waited >= 500) least = Math.min(least, longestRead)
  }
  isOver = true
  await readers
  t.ok(least < 250, `while a write waited, no read took longer than ${least.toFixed(0)} ms`)
  t.strictSame([...new Set(writes)], ['503 1'])
  t.strictSame([...new Set(reads)], ['200 null'])

  other.exec('rollback')
  const response = await refresh(server, client, token)
  t.equal(response.status, 200, 'it goes on without a restart')
  const { refresh_token: successor } = (await response.json()) as Tokens
  t.equal((await refresh(server, client, successor)).status, 200)
})

t.test('a short transaction of another process fails no request', async (t) => {
  const data = newFolder(t)
  const { server } = await startProcess(t, data, { LYCHGATE_LOG_LEVEL: 'fatal' })
  const other = new Database(`${data}/lychgate.db`)
  t.teardown(() => other.close())
  for (let round = 0; round < 5; round += 1) {
    other.exec('begin immediate')
    const clients = Array.from({ length: 5 }, () => register(server))
    await setTimeout(100)
    other.exec('rollback')
    await t.resolves(Promise.all(clients))
  }
})
