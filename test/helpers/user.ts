import { type Issuer, signInAndApprove } from './flow.ts'
import { alice } from './server.ts'
import { type Page, UserAgent } from './user-agent.ts'

/** A user with a browser that stays signed in, whichever client sends them. */
export interface TestUser {
  readonly agent: UserAgent
  /** Signs in if necessary, approves, and returns the callback. */
  approve(url: URL | string, scope?: readonly string[]): Promise<URL>
  /** The same for `response_mode=form_post`: what the browser posts to the client. */
  approveByPost(url: URL | string): Promise<Request>
  /** Signs in if necessary, and denies. */
  deny(url: URL | string): Promise<URL>
}

/** A user who is not signed in; they keep their browser from one request to the next. */
export function newUser(server: Issuer, credentials = alice): TestUser {
  const agent = new UserAgent(server.issuer)

  async function consentPage(url: URL | string): Promise<Page> {
    let landing = await agent.open(String(url))
    if (landing.at === 'page' && fieldNames(landing.page).includes('password')) {
      landing = await agent.submit(landing.page, credentials)
    }
    if (landing.at === 'page' && decisionsOf(landing.page).includes('approve')) return landing.page
    throw new Error(
      `no consent page: ${landing.at === 'page' ? landing.page.html : landing.location.toString()}`,
    )
  }

  return {
    agent,
    async approve(url, scope) {
      return signInAndApprove(agent, await agent.open(String(url)), {
        user: credentials,
        ...(scope && { scope }),
      })
    },
    async approveByPost(url) {
      const landing = await agent.submit(await consentPage(url), { decision: 'approve' })
      if (landing.at === 'redirect') throw new Error(`redirected to ${landing.location}`)
      const [form] = landing.page.forms
      if (form === undefined) throw new Error(`no form: ${landing.page.html}`)
      const body = new URLSearchParams(form.fields.map(({ name, value }): [string, string] => [name, value]))
      return new Request(form.action, { method: form.method.toUpperCase(), body })
    },
    async deny(url) {
      const landing = await agent.submit(await consentPage(url), { decision: 'deny' })
      if (landing.at === 'page') throw new Error(`no redirect: ${landing.page.html}`)
      return landing.location
    },
  }
}

function fieldNames(page: Page): readonly string[] {
  return page.forms[0]?.fields.map(({ name }) => name) ?? []
}

function decisionsOf(page: Page): readonly string[] {
  return page.forms[0]?.buttons.map(({ value }) => value) ?? []
}
