import { pageOf } from '../../helpers/authorization.ts'
import { alice, type TestServer } from '../../helpers/server.ts'
import type { Form, Landing, Page, UserAgent } from '../../helpers/user-agent.ts'

/** Opens a section of the account page, signing in if necessary. */
export async function enter(
  server: TestServer,
  agent: UserAgent,
  section: string,
  user = alice,
): Promise<Page> {
  const page = pageOf(await agent.open(`${server.issuer}/account${section}`))
  return new URL(page.url).pathname.endsWith('/login') ? pageOf(await agent.submit(page, user)) : page
}

/** The form with the button that sends this. */
export function formWith(page: Page, name: string, value?: string): Form {
  const found = page.forms.find(({ buttons }) =>
    buttons.some((button) => button.name === name && (value === undefined || button.value === value)),
  )
  if (found === undefined) throw new Error(`no button ${name}=${value ?? ''} on ${page.url}: ${page.html}`)
  return found
}

/** Presses the button of a page that sends this. */
export function press(agent: UserAgent, page: Page, name: string, value: string): Promise<Landing> {
  return agent.submit(page, { [name]: value }, formWith(page, name, value))
}

/** The values of every button with this name. */
export function offered(page: Page, name: string): readonly string[] {
  return page.forms.flatMap(({ buttons }) =>
    buttons.filter((button) => button.name === name).map(({ value }) => value),
  )
}

/** The text of a page without its markup. */
export function textOf({ html }: Page): string {
  return html
    .replaceAll(/<\/?(?:bdi|strong|code|a)\b[^>]*>/g, '')
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/&#39;/g, "'")
    .replaceAll('&amp;', '&')
    .replaceAll(/\s+/g, ' ')
}

/** The confirmation on the page. */
export function doneOf({ html }: Page): string | undefined {
  return /<p class="done" role="status">([^<]*)<\/p>/.exec(html)?.[1]
}
