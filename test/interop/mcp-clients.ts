/**
 * mcp-remote, MCP Inspector and the MCP conformance suite from npm, against a fresh development server and the MCP server
 * of examples/mcp. The clients register on `http://localhost`, send the user to the browser, and list a tool; the suite
 * is a client with a metadata document. scripts/clients pins their versions.
 */
import { spawn } from 'node:child_process'
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import t, { type Test } from 'tap'
import { launchBrowser } from '../helpers/chromium.ts'
import { newFolder } from '../helpers/command.ts'
import { runExample, startExampleServer } from '../helpers/examples.ts'
import { freePort } from '../helpers/free-port.ts'

const packages = fileURLToPath(new URL('../../scripts/clients/node_modules/', import.meta.url))
const { issuer, user, resource: resourceAt } = await startExampleServer(t)
const resource = resourceAt('http://127.0.0.1:9502/mcp')
const mcpServer = runExample(t, ['mcp/server.ts'], { ISSUER: issuer, RESOURCE: resource })
await mcpServer.until(/Timetable is ready at .*\n/)

/** The environment of a client on a new machine, with an empty home folder. */
function newMachine(t: Test): { readonly home: string; readonly environment: Record<string, string> } {
  const home = newFolder(t)
  return { home, environment: { PATH: process.env['PATH'] ?? '', HOME: home } }
}

t.test(
  'mcp-remote registers on localhost, signs in with the browser, and lists and calls a tool',
  async (t) => {
    const { home, environment } = newMachine(t)
    const [browser, opened] = [join(home, 'browser'), join(home, 'opened')]
    // A stand-in for the browser of this machine, which xdg-open starts: it passes the URL to the user of this test.
    writeFileSync(browser, `#!/bin/sh\nprintf '%s\\n' "$1" >> '${opened}'\n`)
    chmodSync(browser, 0o755)
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [join(packages, 'mcp-remote/dist/proxy.js'), resource],
      env: { ...environment, BROWSER: browser, MCP_REMOTE_CONFIG_DIR: join(home, 'mcp-remote') },
      stderr: 'pipe',
    })
    let log = ''
    transport.stderr?.on('data', (chunk) => {
      log += chunk
    })
    const client = new Client({ name: 'Test', version: '1.0.0' })
    t.teardown(() => client.close())
    let isOver = false
    const connected = client
      .connect(transport)
      .catch((error: unknown) => {
        throw new Error(`mcp-remote did not connect: ${log}`, { cause: error })
      })
      .finally(() => {
        isOver = true
      })
    while (!isOver && addressIn(opened) === undefined) await new Promise((resolve) => setTimeout(resolve, 50))
    if (isOver) await connected
    const address = new URL(addressIn(opened) ?? '')
    t.equal(address.origin, issuer)
    t.match(address.searchParams.get('redirect_uri'), /^http:\/\/localhost:\d+\//)
    t.equal((await fetch(await user.approve(address))).status, 200)
    await connected
    t.match((await client.listTools()).tools, [{ name: 'list_lessons' }, { name: 'clear_lessons' }])
    t.match(await client.callTool({ name: 'list_lessons' }), { content: [{ text: /Monday: reading/ }] })
  },
)

/** The URL a browser was opened with, once the line is complete. */
function addressIn(file: string): string | undefined {
  return existsSync(file) ? /^(.*)\n/.exec(readFileSync(file, 'utf8'))?.[1] : undefined
}

t.test('MCP Inspector registers on localhost, signs in in Chromium, and lists the tools', async (t) => {
  const { home, environment } = newMachine(t)
  const launcher = join(packages, '@modelcontextprotocol/inspector/clients/launcher/build/index.js')
  const inspector = spawn(
    process.execPath,
    [launcher, '--web', '--transport', 'http', '--server-url', resource],
    {
      env: {
        ...environment,
        HOST: 'localhost',
        CLIENT_PORT: String(await freePort()),
        MCP_SANDBOX_PORT: '0',
        MCP_APP_ORIGIN_PORT: '0',
        MCP_AUTO_OPEN_ENABLED: 'false',
        MCP_STORAGE_DIR: home,
        MCP_INSPECTOR_SECRET_STORE: 'memory',
      },
    },
  )
  t.teardown(() => inspector.kill('SIGKILL'))
  const address = await new Promise<string>((resolve, reject) => {
    let output = ''
    for (const stream of [inspector.stdout, inspector.stderr])
      stream.on('data', (chunk) => {
        output += chunk
        const [address] = /http:\/\/localhost:\d+\S*MCP_INSPECTOR_API_TOKEN=\w+(?=\s)/.exec(output) ?? []
        if (address) resolve(address)
      })
    inspector.once('close', () => reject(new Error(`MCP Inspector ended: ${output}`)))
  })
  const browser = await launchBrowser()
  t.teardown(() => browser.close())
  const page = await browser.newPage()
  // A busy machine can pause; this test measures no times.
  page.setDefaultTimeout(60_000)
  // Its switch is shown before it listens, so a click can be lost.
  for (let attempt = 1; !page.url().startsWith(`${issuer}/login`); attempt += 1) {
    await page.goto(address)
    await page.getByRole('switch').first().click({ force: true })
    const opened = page.waitForURL((url) => url.origin === issuer && url.pathname === '/login')
    await opened.catch((error: unknown) => {
      if (attempt === 3) throw error
    })
  }
  await page.getByRole('button', { name: 'alice' }).click()
  await page.waitForURL((url) => url.pathname === '/consent')
  const sentBackTo = await page.locator('.host').first().textContent()
  t.match(sentBackTo, new URL(address).host)
  await page.locator('button[value=approve]').click()

  await page.waitForURL((url) => url.origin === new URL(address).origin)
  // The message log has this line once it is connected; an earlier click is lost.
  await page
    .getByText(/^tools\/list$/i)
    .first()
    .waitFor()
  await page
    .locator('label')
    .filter({ hasText: /^Tools$/ })
    .click()
  for (const tool of ['list_lessons', 'clear_lessons']) {
    await page.getByText(tool, { exact: true }).first().waitFor()
    t.pass(tool)
  }
})

/** A check of the MCP conformance suite. */
interface Check {
  readonly id: string
  readonly status: string
  readonly errorMessage?: string
}

t.test('the MCP conformance suite finds nothing to warn of in the authorization server', async (t) => {
  const [port, results] = [await freePort(), newFolder(t)]
  const clientId = `${issuer}/_dev/documents/conformance.json`
  await fetch(clientId, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ redirect_uris: ['http://127.0.0.1/callback'] }),
  })
  const suite = spawn(process.execPath, [
    join(packages, '@modelcontextprotocol/conformance/dist/index.js'),
    'authorization',
    ...['--url', issuer, '--client-id', clientId, '--resource', issuer],
    ...['--port', String(port), '--output-dir', results],
  ])
  t.teardown(() => suite.kill('SIGKILL'))
  let output = ''
  const sentTo = new Promise<string>((resolve) => {
    for (const stream of [suite.stdout, suite.stderr])
      stream.on('data', (chunk) => {
        output += chunk
        const [address] = /http:\/\/localhost:\d+\/oauth\/authorize\S+(?=\s)/.exec(output) ?? []
        if (address !== undefined && output.includes('Callback server started')) resolve(address)
      })
  })
  const ended = new Promise<number | null>((resolve) => suite.once('close', resolve))
  const address = await Promise.race([sentTo, ended])
  if (typeof address !== 'string') throw new Error(`the suite ended: ${output}`)
  t.equal((await fetch(await user.approve(address))).status, 200)
  t.equal(await ended, 0, 'the suite passes', { output })
  const checks = readdirSync(results).flatMap((scenario): readonly Check[] =>
    JSON.parse(readFileSync(join(results, scenario, 'checks.json'), 'utf8')),
  )
  t.ok(checks.length >= 3, `${checks.length} checks`)
  for (const { id, status, errorMessage } of checks) t.equal(status, 'SUCCESS', `${id} ${errorMessage ?? ''}`)
})
