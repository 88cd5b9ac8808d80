/**
 * Real apps sign a user in: each is installed from its own package, added by its recipe, set up with the lines that
 * `lychgate client add` prints, and used in Chromium. Run before a release; needs Python, Go and the network.
 *
 *   npm run test:apps
 *   npm run test:apps -- streamlit node-red
 */
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { makeCertificates } from '../helpers/certificates.ts'
import { launchBrowser } from '../helpers/chromium.ts'
import { newFolder, run, start } from '../helpers/command.ts'
import { freePort } from '../helpers/free-port.ts'
import { type App, apps } from './apps.ts'
import { startFront } from './front.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
/** Apps stay installed for the next run. */
const cache = join(root, 'node_modules/.cache/apps')
const password = 'correct horse battery staple'
/** Apps are slow to start on a busy machine. */
const patience = 120_000

const names = process.argv.slice(2)
const chosen = names.length === 0 ? apps : apps.filter(({ recipe }) => names.includes(recipe))
const unknown = names.filter((name) => !apps.some(({ recipe }) => recipe === name))
if (unknown.length > 0) throw new Error(`no such app: ${unknown.join(', ')}`)

t.test('apps sign a user in by their recipes', async (t) => {
  const certificates = makeCertificates(newFolder(t))
  const browser = await launchBrowser()
  t.teardown(() => browser.close())

  // The server as an operator has it: its own folder, a user with a password.
  const port = await freePort()
  const issuer = `http://localhost:${port}`
  const environment = {
    LYCHGATE_DATA: newFolder(t),
    LYCHGATE_ISSUER: issuer,
    LYCHGATE_PORT: `${port}`,
    LYCHGATE_SECRET: 'the secret of a server that only a test has',
  }
  const user = ['ada', '--email', 'ada@example.com', '--email-verified', '--name', 'Ada Ash']
  t.match(await run(['user', 'add', ...user], { environment, input: `${password}\n` }), { code: 0 })
  const server = start(['serve'], environment)
  t.teardown(() => server.kill('SIGTERM'))
  await isUp(`${issuer}/readyz`, server)

  for (const app of chosen) {
    await t.test(`${app.recipe} ${app.version} signs a user in by its recipe`, async (t) => {
      t.equal(triedVersion(app), app.version, 'the recipe names the version that is run')
      const installed = install(app)
      const appPort = await freePort()
      const frontPort = await freePort()
      const url = `https://localhost:${frontPort}`
      const added = await run(['client', 'add', '--for', app.recipe, '--url', url, '--yes'], { environment })
      t.equal(added.code, 0, added.stderr)
      const settings = settingsIn(added.stdout)
      t.ok(settings.length > 0, 'it prints what to set')

      const folder = newFolder(t)
      const {
        command,
        before = [],
        ...program
      } = app.start({ installed, folder, url, port: appPort, settings })
      const own = { ...process.env, ...program.environment, HOME: folder }
      for (const [file = '', ...args] of before)
        execFileSync(file, args, { env: own, cwd: folder, stdio: 'pipe' })
      const [file = '', ...args] = command
      const log = join(folder, 'app.log')
      const output = openSync(log, 'w')
      const child = spawn(file, args, {
        env: own,
        cwd: folder,
        stdio: ['ignore', output, output],
        detached: true,
      })
      // With all that it started itself.
      t.teardown(() => child.pid !== undefined && process.kill(-child.pid, 'SIGKILL'))
      await isUp(`http://127.0.0.1:${appPort}/`, child)
      await startFront(t, certificates.localhost, frontPort, appPort)

      const context = await browser.newContext({ ignoreHTTPSErrors: true })
      t.teardown(() => context.close())
      const page = await context.newPage()
      page.setDefaultTimeout(patience)
      try {
        await app.open(page, url)
        await page.getByLabel('Password').waitFor()
        t.ok(page.url().startsWith(issuer), 'the app sends its user here')
        await page.locator('input[name=username]').fill('ada')
        await page.getByLabel('Password').fill(password)
        await page.getByRole('button', { name: 'Sign in', exact: true }).click()
        await page.getByRole('button', { name: 'Allow' }).click()
        await app.shows(page, url)
        t.pass('the app shows who signed in')
      } catch (error) {
        const text = await page.locator('body').innerText()
        t.fail(`${error}\n${page.url()}\n${text.slice(0, 1500)}\n${readFileSync(log, 'utf8').slice(-3000)}`)
      }
    })
  }
})

/** Installs an app once for each version. */
function install({ recipe, version, python, npm, go }: App): string {
  const folder = join(cache, `${recipe}-${version.replaceAll(' ', '-')}`)
  const done = join(folder, 'installed')
  if (existsSync(done)) return folder
  mkdirSync(folder, { recursive: true })
  const exec = (file: string, args: readonly string[], more: Readonly<Record<string, string>> = {}) =>
    execFileSync(file, args, { cwd: folder, stdio: 'pipe', env: { ...process.env, ...more } })
  if (python) {
    exec('python3', ['-m', 'venv', folder])
    exec(join(folder, 'bin/pip'), ['install', '--quiet', ...python])
  }
  if (npm) exec('npm', ['install', '--no-audit', '--no-fund', '--prefix', folder, ...npm])
  if (go !== undefined) exec('go', ['install', go], { GOBIN: join(folder, 'bin') })
  writeFileSync(done, '')
  return folder
}

/** Returns the lines that a recipe says to set: those that are indented, behind "Set in …:". */
function settingsIn(text: string): readonly string[] {
  const [, list = ''] = /^.*Set in .*:\n((?: {2}.*\n)+)/m.exec(text) ?? []
  return list
    .split('\n')
    .map((line) => line.slice(2))
    .filter((line) => line !== '')
}

function triedVersion({ recipe }: App): string | undefined {
  const file = join(root, 'src/clients/recipes', `${recipe}.json`)
  return JSON.parse(readFileSync(file, 'utf8')).tried?.version
}

/** Waits until something responds there, whatever it says. */
async function isUp(url: string, child: { readonly exitCode: number | null }): Promise<void> {
  while ((await fetch(url, { redirect: 'manual' }).catch(() => undefined)) === undefined) {
    if (child.exitCode !== null) throw new Error(`it ended before it listened at ${url}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
