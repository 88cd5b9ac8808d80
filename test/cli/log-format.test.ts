/** `lychgate serve --log-format text`, as a terminal shows it. */
import t from 'tap'
import { ended, newFolder, run, start } from '../helpers/command.ts'
import { freePort } from '../helpers/free-port.ts'

const secret = 'the secret of this test, long enough'

/** Serves until a rejected request with a control character is in the log. Returns what the server wrote. */
async function written(
  t: Parameters<typeof newFolder>[0],
  args: readonly string[],
  more = {},
): Promise<string> {
  const port = String(await freePort())
  const issuer = `http://localhost:${port}`
  const settings = { LYCHGATE_SECRET: secret, LYCHGATE_ISSUER: issuer, LYCHGATE_PORT: port }
  const environment = { ...settings, LYCHGATE_DRAIN_SECONDS: '0', ...more }
  const child = start(['serve', '--data', newFolder(t), ...args], environment)
  t.teardown(() => child.kill('SIGKILL'))
  const end = ended(child)
  const log = new Promise<void>((resolve, reject) => {
    let seen = ''
    let isAsked = false
    child.stdout.on('data', (chunk) => {
      seen += chunk
      if (!isAsked && seen.includes('ready')) {
        isAsked = true
        fetch(`${issuer}/oauth/authorize?client_id=%1b%5b2J%0a2026-11-20`).catch(reject)
      }
      if (/authorize.*\n/.test(seen)) resolve()
    })
    end.then(({ stderr }) => reject(new Error(`it ended: ${stderr}`)), reject)
  })
  await log
  child.kill('SIGTERM')
  const { code, stdout } = await end
  t.equal(code, 0)
  return stdout
}

t.test('text is for reading, by flag and by variable, and JSON the default', async (t) => {
  const at = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?Z /
  for (const text of [
    await written(t, ['--log-format', 'text']),
    await written(t, [], { LYCHGATE_LOG_FORMAT: 'text' }),
  ]) {
    t.match(text, / ready issuer=http:\/\/localhost:\d+\n/)
    t.match(
      text,
      / 400 GET \/oauth\/authorize [\d.]+ ms\n {9}invalid_client: .*\n(?: {9}.*\n)* {9}request {3}[\w-]{36}\n/,
    )
    t.match(text, / stopped .*requests=\d+/)
    t.notMatch(text, /[^\P{C}\n]/u, 'no control character reaches the terminal')
    const lines = text.trimEnd().split('\n')
    t.strictSame(
      lines.filter((line) => !at.test(line) && !line.startsWith('         ')),
      [],
      'nothing of the request looks like a line of the log',
    )
  }
  const json = await written(t, [])
  for (const line of json.trimEnd().split('\n')) t.type(JSON.parse(line), 'object')
})

t.test('another format is rejected with the ones there are', async (t) => {
  const environment = { LYCHGATE_SECRET: secret, LYCHGATE_ISSUER: 'http://localhost:9551' }
  const { code, stderr } = await run(['serve', '--data', newFolder(t), '--log-format', 'xml'], {
    environment,
  })
  t.equal(code, 78)
  t.match(stderr, 'logFormat (--log-format): must be json or text, not "xml"')
})

t.test('failed sign-ins are warnings: a log without warnings would have none', async (t) => {
  const environment = {
    ...{ LYCHGATE_SECRET: secret, LYCHGATE_ISSUER: 'http://localhost:9551' },
    ...{ LYCHGATE_LOG_FAILED_SIGN_INS: 'on', LYCHGATE_LOG_LEVEL: 'error' },
  }
  const { code, stderr } = await run(['serve', '--data', newFolder(t)], { environment })
  t.equal(code, 78)
  t.match(stderr, 'logFailedSignIns: needs logLevel warn, info or debug')
})
