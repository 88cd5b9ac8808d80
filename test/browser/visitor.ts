import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { alice } from '../helpers/server.ts'
import type { LoopbackClient } from './loopback-client.ts'

/** What a visit needs of tap's `t`. */
interface Test {
  teardown(end: () => unknown): unknown
}

/** A browser of its own, at a page. */
export interface Visit {
  readonly page: Page
  readonly context: BrowserContext
  /** What the browser complained of: everything its policies blocked, and responses that were rejections. */
  readonly complaints: string[]
}

/** Opens an address in a browser that knows nothing yet. */
export async function visit(
  t: Test,
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<Visit> {
  const context = await browser.newContext(options)
  t.teardown(() => context.close())
  context.setDefaultTimeout(5000)
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text())
  })
  await page.goto(url)
  return { page, context, complaints }
}

/** Fills the sign-in page in and sends it. */
export async function signIn(page: Page, password = alice.password): Promise<void> {
  await page.getByLabel('Email or user name').fill(alice.username)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
}

/** The button that gives access. */
export function allowButton(page: Page) {
  return page.getByRole('button', { name: 'Allow', exact: true })
}

/** Waits until the program on this computer has its answer, and returns what came with it. */
export async function backAt(page: Page, client: LoopbackClient): Promise<Readonly<Record<string, string>>> {
  await page.getByRole('heading', { name: 'You may close this page' }).waitFor()
  return client.calls.at(-1)?.parameters ?? {}
}

/** Waits for a page by its heading. */
export function headed(page: Page, name: string): Promise<void> {
  return page.getByRole('heading', { name, level: 1 }).waitFor()
}
