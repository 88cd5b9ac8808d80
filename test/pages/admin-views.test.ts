/** Every admin page, as administrators see it and with hostile text wherever text can be. */
import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { adminPages, hostileAdminPages } from './samples/admin.ts'
import { buildSamples, parseElements } from './samples/read-page.ts'

const samples = { ...adminPages, ...hostileAdminPages }
const app = await buildSamples(samples)
t.teardown(() => app.close())

const elementNames =
  'a bdi body br button code datalist dd details div dl dt fieldset footer form h1 h2 head header html img input label legend li link main meta nav option p path picture rect script section select small source span strong summary svg text textarea title ul'

t.test('the samples include every admin page', async (t) => {
  const views = new URL('../../views/admin/', import.meta.url)
  const isPage = (name: string) => readFileSync(new URL(name, views), 'utf8').includes('layout(')
  const pages = readdirSync(views).filter((name) => name.endsWith('.eta') && isPage(name))
  const seen = Object.values(adminPages).map(({ page }) => `${page.replace('admin/', '')}.eta`)
  // All admin pages share the frame.
  t.strictSame([...new Set(seen), 'frame.eta'].toSorted(), pages.toSorted())
})

t.test(
  '[rfc6749-10.14-sanitise] hostile text never becomes an element, an attribute or a link',
  async (t) => {
    const known = new Set(elementNames.split(' '))
    for (const name of Object.keys(samples)) {
      const { statusCode, body } = await app.inject(`/${name}`)
      t.equal(statusCode, 200, name)
      for (const { name: element, attributes } of parseElements(body)) {
        t.ok(known.has(element), `${name}: <${element}>`)
        t.notOk(
          [...attributes.keys()].some((key) => /^on|^style$|^srcdoc$|^formaction$/.test(key)),
          name,
        )
        for (const address of ['href', 'src', 'action'].flatMap((key) => attributes.get(key) ?? []))
          t.match(address, /^(?:\/(?!\/)|https:\/\/(?:docs\.)?riverside\.example\/)/, `${name}: ${address}`)
      }
    }
  },
)
