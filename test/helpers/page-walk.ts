import type { StoreContents } from '../../src/storage/store.ts'
import { allSent, type Mailbox } from './mailbox.ts'
import {
  type Control,
  decode,
  type Filled,
  fieldsOf,
  type PageForm,
  readForms,
  viewOf,
} from './page-forms.ts'
import type { TestServer } from './server.ts'
import { type Landing, type Page, UserAgent } from './user-agent.ts'

/** A page in a browser, and what the server and the browser had stored when it was shown. */
interface Place {
  readonly page: Page
  readonly contents: StoreContents
  readonly cookies: ReadonlyMap<string, string>
  /** Who is in front of it: what one opened, another opens, too. */
  readonly of: string
  /** Sent in the meantime. */
  readonly emailed: readonly string[]
}

/** What a walk did. */
export interface Walked {
  /** The marks of the forms that were submitted. */
  readonly marks: ReadonlySet<string>
  /** The marks of those on pages that let a client's callback redirect on: without `form-action`. */
  readonly towardClients: ReadonlySet<string>
  readonly submissions: number
  readonly faults: readonly string[]
}

/** What a walk begins with. */
export interface WalkOptions {
  readonly server: TestServer
  readonly mailbox: Mailbox
  /** Pages to begin with, each in its browser. */
  readonly starts: readonly { readonly of: string; readonly agent: UserAgent; readonly url: string }[]
  /** What a user types into a control. */
  readonly type: (control: Control, form: PageForm, page: Page) => string
}

/** Links that differ only in what they name are opened so often: an app may be locked, or have no secret. */
const mostAlike = 6
/** Buttons of one form that are pressed. */
const mostButtons = 12
/** Choices of one list that are made. */
const mostOptions = 3

/**
 * Opens every page that links and forms lead to, and submits each form as a browser would: with each button, with none,
 * one, and all of its boxes, with each choice, and with what is optional. Before each step, the server and the browser get
 * back what they had when the page was shown, so that a step that deletes something ends no other.
 */
export async function walkPages({ server, mailbox, starts, type }: WalkOptions): Promise<Walked> {
  const { store, keys } = server.deps
  const queue: Place[] = []
  const [sent, opened, alike] = [new Set<string>(), new Set<string>(), new Map<string, number>()]
  const [marks, towardClients, faults] = [new Set<string>(), new Set<string>(), [] as string[]]
  let [submissions, emails] = [0, 0]

  const arrive = async (of: string, agent: UserAgent, landing: Landing, how?: string) => {
    await allSent()
    const emailed = mailbox.emails.slice(emails).flatMap(({ url }) => url || [])
    emails = mailbox.emails.length
    const fault = faultOf(landing)
    if (how !== undefined && fault !== undefined) faults.push(`${how}: ${fault}`)
    if (landing.at !== 'page') return
    const { page } = landing
    const isKnown =
      formsOf(page).every(({ key }) => sent.has(key)) && linksOf(page).every((url) => isOpened(of, url))
    if (isKnown && emailed.length === 0) return
    queue.push({ page, of, contents: await store.contents(), cookies: new Map(agent.cookies), emailed })
  }
  // A server of its own, with its own store.
  const isNested = (url: string) => /\/_dev\/(?:issuers|forks)\//.test(url)
  const isOpened = (of: string, url: string) =>
    isNested(url) || opened.has(`${of} ${url}`) || (alike.get(`${of} ${patternOf(url)}`) ?? 0) >= mostAlike
  const returnTo = async ({ contents, cookies }: Place) => {
    await store.replace(contents)
    await keys.reload()
    const agent = new UserAgent(server.issuer)
    for (const [name, value] of cookies) agent.cookies.set(name, value)
    return agent
  }
  const submit = async (place: Place, form: PageForm) => {
    marks.add(form.mark)
    if (isTowardClient(place.page)) towardClients.add(form.mark)
    if (!form.action.startsWith(server.origin)) return
    if (form.buttons.length + form.controls.filter(({ type }) => type !== 'hidden').length === 0)
      faults.push(`${form.mark} on ${patternOf(place.page.url)} has nothing to press`)
    const known = new Set<string>()
    for (const filled of fillings(form, (control) => type(control, form, place.page))) {
      const fields = fieldsOf(form, filled)
      if (known.has(String(fields))) continue
      known.add(String(fields))
      const agent = await returnTo(place)
      submissions += 1
      const landing =
        form.method === 'GET'
          ? await agent.open(`${form.action}?${fields}`)
          : await agent.open(form.action, { method: form.method, body: fields })
      // The page of an error stays one in another language.
      const isOfError = viewOf(place.page.html) === 'error.eta'
      const how = isOfError ? undefined : `${form.mark} on ${patternOf(place.page.url)} with ${fields}`
      await arrive(place.of, agent, landing, how)
      // What was sent may have changed the page.
      if (landing.at === 'page' && landing.page.status < 400 && form.method === 'POST')
        await arrive(place.of, agent, await agent.open(place.page.url))
    }
  }
  const visit = async (place: Place) => {
    for (const { form, key } of formsOf(place.page)) {
      if (sent.has(key)) continue
      sent.add(key)
      await submit(place, form)
    }
    for (const url of [...linksOf(place.page), ...place.emailed]) {
      if (isOpened(place.of, url)) continue
      const pattern = `${place.of} ${patternOf(url)}`
      opened.add(`${place.of} ${url}`)
      alike.set(pattern, (alike.get(pattern) ?? 0) + 1)
      const agent = await returnTo(place)
      await arrive(place.of, agent, await agent.open(url))
    }
  }

  const atStart = await store.contents()
  for (const { of, agent, url } of starts) {
    await store.replace(atStart)
    await arrive(of, agent, await agent.open(url))
  }
  for (let place = queue.shift(); place !== undefined; place = queue.shift()) await visit(place)
  return { marks, towardClients, submissions, faults }
}

/** What is wrong with where a browser ended: an error page, or an error of the server for the client. */
function faultOf(landing: Landing): string | undefined {
  if (landing.at === 'redirect') {
    const error = landing.location.searchParams.get('error') ?? ''
    return ['invalid_request', 'server_error'].includes(error) ? String(landing.location) : undefined
  }
  const { status, html } = landing.page
  const isPage = landing.page.headers.get('content-type')?.startsWith('text/html') ?? false
  if (status < 400 || (isPage && status < 500 && viewOf(html) !== 'error.eta')) return undefined
  return `${status} ${/<bdi lang="en">([^<]*)/.exec(html)?.[1] ?? html.slice(0, 200)}`
}

/** The forms of a page, each with what tells it from others. */
function formsOf(page: Page): readonly { readonly form: PageForm; readonly key: string }[] {
  const { html, url } = page
  return readForms(html, url).map((form) => {
    const names = [
      ...form.controls.map(({ name, value, type }) => (type === 'hidden' ? isWord(value) && value : name)),
      ...form.buttons.map(({ name }) => name),
    ]
    const [path] = patternOf(url).split(' ', 1)
    return { form, key: [path, isTowardClient(page), form.mark, ...new Set(names)].join(' ') }
  })
}

/** Whether the policy of a page lets a client's callback redirect on. */
function isTowardClient({ headers }: Page): boolean {
  return !headers.get('content-security-policy')?.includes('form-action')
}

/** The addresses that a page links or shows. */
function linksOf({ html, url }: Page): readonly string[] {
  const { origin } = new URL(url)
  const links = [...html.matchAll(/<a\b[^>]* href="([^"]+)"/g)].map(
    ([, href = '']) => new URL(decode(href), url),
  )
  const shown = [...html.matchAll(/<code[^>]*>(https?:[^<]+)<\/code>/g)].map(([, text = '']) =>
    URL.parse(decode(text)),
  )
  return [...links, ...shown].flatMap((link) =>
    link?.origin === origin ? [link.href.replace(/#.*/, '')] : [],
  )
}

/** Whether a value is one of few, such as the name of a step. */
const isWord = (value: string) => /^[a-z-]{1,12}$/.test(value)

/** An address without what names one thing among many: identifiers, and long values. */
function patternOf(address: string): string {
  const { pathname, searchParams } = new URL(address)
  const path = pathname.split('/').map((part) => (/[\d_A-Z]|.{20}/.test(part.slice(1)) ? ':id' : part))
  const query = [...searchParams].map(([name, value]) => (isWord(value) ? `${name}=${value}` : name))
  return [path.join('/'), ...query].join(' ')
}

/** Every way to fill in a form that is walked. */
function* fillings(form: PageForm, type: (control: Control) => string): Generator<Filled> {
  const { controls, buttons } = form
  const typed = controls.filter(
    ({ type, attributes }) => !/^(?:hidden|checkbox|radio|select)$/.test(type) && !attributes.has('hidden'),
  )
  const isScripted = ({ name }: Control) => name === 'credential'
  const textsOf = (chosen: readonly Control[], text = type) =>
    Object.fromEntries(chosen.map((control) => [control.name, text(control)]))
  const required = typed.filter(({ attributes }) => attributes.has('required'))
  const optional = typed.filter(({ attributes }) => !attributes.has('required'))
  const texts = textsOf([...required, ...controls.filter(isScripted)])
  const pressed = buttons.length === 0 ? [{ name: '', value: '' }] : buttons.slice(0, mostButtons)
  const hasBoxes = controls.some(({ type }) => type === 'checkbox')
  for (const button of pressed) {
    yield { texts, button }
    if (hasBoxes) for (const ticked of ['none', 'one', 'all'] as const) yield { texts, button, ticked }
  }
  const button = pressed.at(-1) ?? { name: '', value: '' }
  yield { texts: { ...texts, ...textsOf(optional) }, button }
  yield { texts: { ...texts, ...textsOf(optional, () => '') }, button }
  for (const { name, type, value, options } of controls) {
    if (type === 'radio') yield { texts, button, chosen: { name, value } }
    for (const option of options.slice(-mostOptions)) yield { texts, button, chosen: { name, value: option } }
  }
}
