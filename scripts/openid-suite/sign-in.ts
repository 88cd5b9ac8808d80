import { type Landing, UserAgent } from '../../test/helpers/user-agent.ts'

/** How a sign-in with an upstream ended. */
export type Outcome = 'signed in' | 'rejected'

/**
 * Begins a sign-in with an upstream as a browser without a session does: opens the account page and presses the button
 * of the upstream, which it has not opened yet.
 */
export async function beginSignIn(
  id: string,
  issuer: string,
): Promise<{ readonly browser: UserAgent; readonly away: Landing }> {
  const browser = new UserAgent(issuer)
  const start = await browser.open(`${issuer}/account`)
  const html = start.at === 'page' ? start.page.html : ''
  const button = [...html.matchAll(/href="([^"]+)"/g)]
    .map(([, href = '']) => new URL(href.replaceAll('&amp;', '&'), issuer))
    .find(({ pathname }) => pathname.endsWith(`/login/upstream/${id}`))
  if (button === undefined) throw new Error(`the sign-in page has no button for ${id}`)
  return { browser, away: await browser.open(button.href) }
}

/**
 * Signs in with an issuer of the suite, which asks nothing and redirects back.
 * @throws {Error} if it does not redirect.
 */
export async function signInWith(id: string, issuer: string): Promise<Outcome> {
  const { browser, away } = await beginSignIn(id, issuer)
  if (away.at === 'page') return 'rejected'
  const response = await fetch(away.location, { redirect: 'manual' })
  const back = response.headers.get('location')
  if (back === null) throw new Error(`the suite responded with ${response.status} in place of a redirect`)
  const end = await browser.open(back)
  const isAccount =
    end.at === 'page' && new URL(end.page.url).pathname === new URL(`${issuer}/account`).pathname
  return isAccount && end.page.status === 200 ? 'signed in' : 'rejected'
}
