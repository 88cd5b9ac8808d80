import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { hostile, hostileText, ordinary } from './samples/pages.ts'
import { buildSamples, parseElements, sampleConfig, textOf } from './samples/read-page.ts'

const samples = { ...ordinary, ...hostile }
const names = Object.keys(samples)
const app = await buildSamples(samples)
t.teardown(() => app.close())

const elementNames =
  'a bdi body br button caption code dd details div dl dt footer form h1 h2 head header html img input label li link main meta nav ol option p path picture script section select small source span strong summary svg table tbody td th thead title tr ul'

async function html(name: string): Promise<string> {
  return (await app.inject(`/${name}`)).body
}

t.test(
  '[rfc6749-10.14-sanitise] hostile text in any place never becomes an element or an attribute',
  async (t) => {
    const known = new Set(elementNames.split(' '))
    for (const name of names) {
      for (const { name: element, attributes } of parseElements(await html(name))) {
        t.ok(known.has(element), `${name}: <${element}>`)
        t.notOk(
          [...attributes.keys()].some((key) => /^on|^style$|^srcdoc$|^formaction$/.test(key)),
          name,
        )
      }
    }
  },
)

t.test('the samples include every page, as users see it', async (t) => {
  const views = new URL('../../views/', import.meta.url)
  const isPage = (name: string) => readFileSync(new URL(name, views), 'utf8').includes('layout(')
  const pages = readdirSync(views).filter((name) => name.endsWith('.eta') && isPage(name))
  const seen = new Set(Object.values(ordinary).map(({ page }) => `${page}.eta`))
  // All account pages share the frame.
  t.strictSame([...seen, 'account-frame.eta'].toSorted(), pages.toSorted())
})

t.test('hostile text in a hidden field and a value is returned unchanged', async (t) => {
  const inputs = parseElements(await html('hostile-login')).filter(({ name }) => name === 'input')
  t.equal(inputs[0]?.attributes.get('name'), hostileText)
  t.equal(inputs[0]?.attributes.get('value'), hostileText)
  t.equal(
    inputs.find(({ attributes }) => attributes.get('id') === 'username')?.attributes.get('value'),
    hostileText,
  )
})

t.test('a link that is not http or https is not shown', async (t) => {
  t.notMatch(await html('hostile-consent'), /javascript:/)
})

t.test('only form_post and passkeys need a script, and it is a file', async (t) => {
  for (const name of names) {
    const scripts = parseElements(await html(name)).filter((element) => element.name === 'script')
    const { page, model } = samples[name as keyof typeof samples]
    const asksDevice = 'passkey' in model || 'creation' in model
    const other = page === 'form-post' ? page : 'fresh' in model ? 'recovery-codes' : undefined
    const file = asksDevice ? 'passkeys' : other
    t.equal(scripts.length, file === undefined ? 0 : 1, name)
    for (const script of scripts)
      t.match(script.attributes.get('src'), new RegExp(`^/assets/${file}\\.js\\?v=`))
  }
})

t.test(
  '[rfc9700-4.2.4-no-third-party-content] [rfc7591-5-display-uri-origin] pages load nothing from elsewhere and link only to URLs of the client or the operator',
  async (t) => {
    const { documentation, policy, terms } = sampleConfig.service
    for (const name of names) {
      const { page, model } = samples[name as keyof typeof samples]
      const started: readonly { url: string }[] = page === 'account-start' ? model.apps : []
      const links: readonly { url: string }[] = 'client' in model ? model.client.links : started
      const own =
        'appUrl' in model ? [model.appUrl] : 'link' in model && 'host' in model.link ? [model.link.url] : []
      const named = new Set([documentation, policy, terms, ...own, ...links.map(({ url }) => url)])
      for (const { name: element, attributes } of parseElements(await html(name))) {
        const [src, href] = [attributes.get('src'), attributes.get('href')]
        if (src !== undefined) t.match(src, /^\/assets\//, `${name}: ${src}`)
        if (href === undefined) continue
        if (element !== 'a') t.match(href, /^\/assets\//, `${name}: ${href}`)
        else if (!named.has(href)) t.match(href, /^\/(?!\/)/, `${name}: ${href}`)
        else t.match(attributes.get('rel'), 'noopener noreferrer', `${name}: ${href}`)
      }
    }
  },
)

t.test('a link of the client shows its host and passes no referrer', async (t) => {
  const document = await html('consent-everything')
  const link = parseElements(document).find(({ attributes }) =>
    attributes.get('href')?.startsWith('https://legal.coursesync.example/'),
  )
  t.equal(link?.attributes.get('rel'), 'noopener noreferrer nofollow')
  t.match(textOf(document), 'Privacy policy legal.coursesync.example')
})

t.test(
  '[rfc6749-10.13-frame-protection] [rfc9700-4.16-csp] every page carries the protecting headers',
  async (t) => {
    for (const name of names) {
      const { headers, statusCode } = await app.inject(`/${name}`)
      t.equal(statusCode, 200, name)
      t.match(headers, {
        'content-type': 'text/html; charset=utf-8',
        'cache-control': 'no-store',
        'x-frame-options': 'DENY',
        'referrer-policy': 'no-referrer',
        'x-content-type-options': 'nosniff',
        'cross-origin-opener-policy': 'same-origin',
        'permissions-policy': /camera=\(\)/,
      })
      const script = [
        'form-post',
        'login',
        'second-factor',
        'account-passkeys',
        'account-one-time-codes',
        'admin/client',
        'admin/client-secret',
        'link-password',
      ].includes(samples[name as keyof typeof samples].page)
      t.equal(
        headers['content-security-policy'],
        `default-src 'none'; script-src ${script ? "'self'" : "'none'"}; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'`,
      )
    }
  },
)

t.test('[rfc9700-4.16-csp] a page of a pending request of a client lacks form-action alone', async (t) => {
  const waiting = await buildSamples({})
  t.teardown(() => waiting.close())
  waiting.get('/', async (request, reply) => {
    request.leadsToClient = true
    return reply.page('form-post', ordinary['form-post'].model)
  })
  t.equal(
    (await waiting.inject('/')).headers['content-security-policy'],
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'",
  )
})

t.test('a form_post page has every member as a field and a button that is no field', async (t) => {
  const elements = parseElements(await html('form-post'))
  const form = elements.find(({ name }) => name === 'form')
  t.equal(form?.attributes.get('action'), 'https://portal.riverside.example/oidc/callback')
  t.equal(form?.attributes.get('method'), 'post')
  t.same(
    elements
      .filter(({ name }) => name === 'input')
      .map(({ attributes }) => [attributes.get('name'), attributes.get('value')]),
    [
      ['code', 'lyc_code_AbC'],
      ['state', 'xyz'],
    ],
  )
  t.same(
    elements.filter(({ name }) => name === 'button').map(({ attributes }) => attributes.has('name')),
    [false],
  )
})

t.test('the configured status is the status sent', async (t) => {
  const app = await buildSamples({})
  t.teardown(() => app.close())
  app.get('/', async (_request, reply) => reply.page('error', ordinary.error.model, { status: 400 }))
  t.equal((await app.inject('/')).statusCode, 400)
})

t.test('a page that cannot be rendered is a 500, not a request without response', async (t) => {
  const app = await buildSamples({})
  t.teardown(() => app.close())
  // @ts-expect-error a model with a member missing
  app.get('/', async (_request, reply) => reply.page('home', { issuer: 'x' }))
  t.equal((await app.inject('/')).statusCode, 500)
})

t.test(
  'the stylesheet is small, has its content type, and is cached for good under the hash of its contents',
  async (t) => {
    const [, address] = (await html('login')).match(/rel="stylesheet" href="([^"]+)"/) ?? []
    const { statusCode, headers, body } = await app.inject(address ?? '')
    t.equal(statusCode, 200)
    t.match(headers, {
      'content-type': 'text/css; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
      'x-content-type-options': 'nosniff',
    })
    t.ok(Buffer.byteLength(body) < 16_384, `${Buffer.byteLength(body)} bytes`)
    t.notMatch(body, /@import|url\(/)
    const again = await app.inject({
      url: address ?? '',
      headers: { 'if-none-match': String(headers['etag']) },
    })
    t.equal(again.statusCode, 304)
    t.equal(again.body, '')
  },
)

t.test('another version of an asset is served but not cached', async (t) => {
  for (const url of [
    '/assets/style.css',
    '/assets/style.css?v=older',
    '/assets/form-post.js',
    '/assets/icon.svg',
  ])
    t.match(await app.inject(url), { statusCode: 200, headers: { 'cache-control': 'no-cache' } })
})

t.test('the icon that browsers ask for without a link is the one of the pages', async (t) => {
  const { statusCode, headers } = await app.inject('/favicon.ico')
  t.match({ statusCode, headers }, { statusCode: 303, headers: { location: /^\/assets\/icon\.svg/ } })
  t.equal((await app.inject(String(headers['location']))).statusCode, 200)
})

t.test('below an issuer with a path the assets are below that path', async (t) => {
  const app = await buildSamples(ordinary, '/id')
  t.teardown(() => app.close())
  const [, address] = (await app.inject('/login')).body.match(/rel="stylesheet" href="([^"]+)"/) ?? []
  t.match(address, /^\/id\/assets\/style\.css\?v=/)
  t.equal((await app.inject(address ?? '')).statusCode, 200)
  t.equal((await app.inject('/assets/style.css')).statusCode, 404)
})

t.test(
  'the name of the installation is on every page, escaped, and links that are not configured are absent',
  async (t) => {
    const app = await buildSamples(ordinary, '', {
      issuer: 'http://localhost:9400',
      texts: {},
      service: { name: 'A & <B>', language: 'en', logoName: 'beside' },
    })
    t.teardown(() => app.close())
    for (const name of Object.keys(ordinary)) {
      const { body } = await app.inject(`/${name}`)
      t.match(body, '<span>A &amp; &lt;B&gt;</span>', name)
      t.notMatch(body, '<footer', name)
    }
  },
)
