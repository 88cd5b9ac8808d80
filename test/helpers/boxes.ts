import type { Form, Landing, Page, UserAgent } from './user-agent.ts'

/** The part of tap's `t` that is used here. */
interface Test {
  notMatch(found: unknown, unwanted: string, message: string): unknown
}

const boxesOf = (form: Form) => form.fields.filter(({ type }) => type === 'checkbox')

/** The names of the check boxes of a page. */
function boxNames({ forms }: Page): readonly string[] {
  return [...new Set(forms.flatMap((form) => boxesOf(form).map(({ name }) => name)))]
}

/**
 * Opens a page again and again, and submits each of its forms that has check boxes as a browser would: with none of them
 * ticked, with one, and with all. The server must not reject what its own page sends.
 * @param changes What a user types, and the button they press.
 */
export async function tickBoxes(
  t: Test,
  agent: UserAgent,
  open: () => Promise<Page>,
  changes: Readonly<Record<string, string>>,
): Promise<readonly Landing[]> {
  const landings: Landing[] = []
  const count = (await open()).forms.length
  for (let index = 0; index < count; index += 1) {
    for (const [how, last] of [
      ['none', 0],
      ['one', 1],
      ['all', Number.POSITIVE_INFINITY],
    ] as const) {
      const page = await open()
      const form = page.forms[index]
      const boxes = form && boxesOf(form)
      if (form === undefined || boxes === undefined || boxes.length === 0) continue
      const ticked = Object.fromEntries(
        boxNames(page).map((name) => [
          name,
          boxes.flatMap((box) => (box.name === name ? [box.value] : [])).slice(0, last),
        ]),
      )
      const landing = await agent.submit(page, { ...changes, ...ticked }, form)
      const rejected = landing.at === 'page' ? landing.page.html : ''
      t.notMatch(rejected, '<h1>This request cannot be continued', `${page.url}: ${how} of ${boxes.length}`)
      landings.push(landing)
    }
  }
  return landings
}
