/** Takes the two pictures of the README, of a real flow on a development server: `npm run pictures -- readme`. */
import { mkdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { launchBrowser } from '../helpers/chromium.ts'
import { authorizationUrl, exchange, register } from '../helpers/flow.ts'
import { alice, startServer } from '../helpers/server.ts'
import { listenForCallback } from './loopback-client.ts'
import { allowButton, signIn } from './visitor.ts'

const folder = fileURLToPath(new URL('../../docs/images/', import.meta.url))
mkdirSync(folder, { recursive: true })
const ends: (() => unknown)[] = []
const server = await startServer({ teardown: (end) => ends.push(end) }, { mode: 'dev' })
const browser = await launchBrowser()
const { redirectUri } = await listenForCallback({ teardown: (end) => ends.push(end) }, { port: 7777 })
const client = await register(server, { client_name: 'Timetable', redirect_uris: [redirectUri] })
const size = { width: 900, height: 1000 }
const page = await browser.newPage({ viewport: size, colorScheme: 'light' })

await page.goto(authorizationUrl(server, client, { scope: 'openid profile courses:read orders:read' }))
await signIn(page, alice.password)
await allowButton(page).waitFor()
await take('consent', { fullPage: true })

await allowButton(page).click()
await page.waitForURL(`${redirectUri}**`)
const code = new URL(page.url()).searchParams.get('code') ?? ''
await exchange(server, client, code, { code_verifier: 'w'.repeat(43) })
await exchange(server, client, code)

await page.goto(`${server.issuer}/_dev/flows`)
await page.getByRole('link', { name: 'Timetable' }).click()
await page.getByText('live', { exact: true }).waitFor()
// The rejected exchange, expanded: each rule that was checked, up to the one that failed.
const rejected = page.locator('details', { hasText: 'code_verifier does not match' }).last()
await rejected.evaluate((element) => element.setAttribute('open', ''))
await rejected.scrollIntoViewIfNeeded()
await take('flow-trace')
await browser.close()
for (const end of ends.toReversed()) await end()

async function take(name: string, options: { readonly fullPage?: boolean } = {}): Promise<void> {
  await page.screenshot({ ...options, path: `${folder}${name}.png` })
}
