import { Secret, TOTP } from 'otpauth'
import type { Page } from 'playwright-core'

/** What the operator of a fresh server has. */
export interface FreshServer {
  readonly issuer: string
  /** The link of the first user, which the server printed. */
  readonly link: string
}

/** What the page of a new app shows, for its developer. */
export interface AddedApp {
  readonly clientId: string
  readonly clientSecret: string
  readonly issuer: string
}

const password = 'a password nobody else has'

/**
 * Opens the link of the first user, which signs in as the administrator that it makes, sets up a second factor, and adds an
 * app with this redirect URI.
 * @param look Called on each page worth looking at, with its name.
 */
export async function addFirstApp(
  page: Page,
  { issuer, link }: FreshServer,
  redirectUri: string,
  look: (name: string) => Promise<void>,
): Promise<AddedApp> {
  await page.goto(link)
  await page.getByLabel('User name').fill('ada')
  await page.getByText('Choose a password instead').click()
  await page.getByLabel('New password', { exact: true }).fill(password)
  await page.getByLabel('New password again').fill(password)
  await page.keyboard.press('Enter')
  await page.waitForURL(`${issuer}/admin`)
  await headed(page, 'Overview')
  for (const step of ['Add an app', 'Invite a user', 'Protect an API'])
    await page.getByRole('link', { name: step }).waitFor()
  await look('1-overview')

  await page.getByRole('link', { name: 'One-time codes' }).click()
  await page.locator('button[value=begin]').click()
  const secret = (await page.locator('p[dir=ltr] code').innerText()).replaceAll(/\s/g, '')
  await page.getByRole('textbox').fill(new TOTP({ secret: Secret.fromBase32(secret) }).generate())
  await page.keyboard.press('Enter')
  await page.locator('.recovery').waitFor()
  await page.goto(`${issuer}/admin`)
  await page.getByRole('link', { name: 'Add an app' }).click()
  await headed(page, 'Add an app')
  await look('2-kinds')
  await page.getByRole('link', { name: 'Web app with a server' }).click()
  await page.getByLabel('Name', { exact: true }).fill('Portal')
  await page.getByLabel('Redirect URIs', { exact: true }).fill(redirectUri)
  await look('3-form')
  await page.getByRole('button', { name: 'Add an app' }).click()
  await headed(page, 'Portal is added')
  await look('4-added')
  const [clientId = '', clientSecret = '', shown = ''] = await page.locator('.values code').allInnerTexts()
  return { clientId, clientSecret, issuer: shown }
}

/** Waits for a page by its heading. */
export function headed(page: Page, name: string): Promise<void> {
  return page.getByRole('heading', { level: 1, name }).waitFor()
}
