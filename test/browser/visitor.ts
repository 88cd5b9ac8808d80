import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { alice } from '../helpers/server.ts'
import type { LoopbackClient } from './loopback-client.ts'

/** The part of tap's `t` that is used here. */
interface Test {
  teardown(end: () => unknown): unknown
}

/** A separate browser, at a page. */
export interface Visit {
  readonly page: Page
  readonly context: BrowserContext
  /** The errors in the console: everything its policies blocked, and error responses. */
  readonly complaints: string[]
}

/** Opens a URL in a new browser. */
export async function visit(
  t: Test,
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<Visit> {
  const context = await browser.newContext(options)
  t.teardown(() => context.close())
  context.setDefaultTimeout(60_000)
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text())
  })
  await page.goto(url)
  return { page, context, complaints }
}

/** Fills in the sign-in page and submits it. */
export async function signIn(page: Page, password = alice.password): Promise<void> {
  await page.getByLabel('Email or user name').fill(alice.username)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
}

/** The button that gives access. */
export function allowButton(page: Page) {
  return page.getByRole('button', { name: 'Allow', exact: true })
}

/** Waits until the program on this computer has its response, and returns the parameters. */
export async function backAt(page: Page, client: LoopbackClient): Promise<Readonly<Record<string, string>>> {
  await page.getByRole('heading', { name: 'You may close this page' }).waitFor()
  return client.calls.at(-1)?.parameters ?? {}
}

/** Waits for a page by its heading. */
export function headed(page: Page, name: string): Promise<void> {
  return page.getByRole('heading', { name, level: 1 }).waitFor()
}
