import t from 'tap'
import { hostile, hostileText, ordinary } from './samples/pages.ts'
import { buildSamples, decodeEntities, parseElements, textOf } from './samples/read-page.ts'

const app = await buildSamples({ ...ordinary, ...hostile })
t.teardown(() => app.close())

async function html(name: string): Promise<string> {
  return (await app.inject(`/${name}`)).body
}

t.test(
  '[rfc7591-5-self-asserted] the consent page of a self-registered client warns and names the redirect host',
  async (t) => {
    const text = textOf(await html('consent'))
    t.match(
      text,
      'This app named itself. It was registered automatically 4 seconds ago by a program on this computer and nobody has checked who made it.',
    )
    t.match(text, 'You will be sent back to 127.0.0.1:51004, a program on this computer.')
    const assured = textOf(await html('consent-identity'))
    t.notMatch(assured, 'named itself')
    t.match(assured, 'You will be sent back to portal.riverside.example.')
    t.notMatch(assured, 'a program on this computer')
  },
)

t.test(
  '[rfc6749-10.2-consent-information] the consent page names the client, every scope and how long access lasts',
  async (t) => {
    const document = await html('consent-everything')
    const text = textOf(document)
    const { client, identity, areas } = ordinary['consent-everything'].model
    t.match(text, `Allow ${client.name} to use your account?`)
    t.match(text, '90 days at most')
    t.equal(areas.length, 20)
    const scopes = [...identity, ...areas.flatMap(({ read, write }) => [read, write])].filter(
      (scope) => scope !== undefined,
    )
    t.equal(scopes.length, 38)
    for (const scope of scopes) t.match(text, scope.description)
    for (const { group } of areas) t.match(text, group)
    t.same(
      parseElements(document)
        .filter(({ attributes }) => attributes.get('name') === 'scope')
        .map(({ attributes }) => attributes.get('value'))
        .toSorted(),
      scopes.map(({ name }) => name).toSorted(),
    )
  },
)

t.test('collapsed items of the consent page are counted and named, and submit with the rest', async (t) => {
  const document = await html('consent-everything')
  t.match(textOf(document), '11 more areas')
  t.match(textOf(document), 'School, Appearance, Events, Membership plans, Coupons')
  const form = document.slice(document.indexOf('<form'), document.indexOf('</form>'))
  t.equal(form.match(/name="scope"/g)?.length, 38)
  t.notMatch(await html('consent'), 'more areas')
})

t.test('sensitive areas are marked, and none of them is collapsed', async (t) => {
  const document = await html('consent-everything')
  const rows = [
    ...document.matchAll(/<th scope="row">([^<]*) <span class="mark" id="[^"]+">Sensitive<\/span>/g),
  ]
  const marked = rows.map(([, area]) => area)
  t.strictSame(marked, ['Students', 'Members', 'Orders', 'Subscriptions', 'Forms', 'Account'])
  t.notMatch(document.slice(document.indexOf('class="more"')), 'Sensitive')
  t.notMatch(await html('consent-identity'), 'Sensitive')
})

t.test('every checkbox of the consent page has a name, and openid cannot be unticked', async (t) => {
  const document = await html('consent-everything')
  const labels = [
    ...document.matchAll(/<label><span class="unseen">(.+?)<\/span><input type="checkbox"[^>]*>/g),
  ]
  t.equal(labels.length, 38)
  t.equal(new Set(labels.map(([, label]) => label)).size, 38)
  t.match(document, /value="openid" checked disabled>/)
  t.equal(document.match(/ disabled>/g)?.length, 1)
})

t.test('the first submit button of the consent form decides nothing, and Deny precedes Allow', async (t) => {
  const buttons = parseElements(await html('consent')).filter(({ name }) => name === 'button')
  t.equal(buttons[0]?.attributes.get('formmethod'), 'dialog')
  t.same(
    buttons.slice(1).map(({ attributes }) => [attributes.get('name'), attributes.get('value')]),
    [
      ['decision', 'deny'],
      ['decision', 'approve'],
    ],
  )
})

t.test('a client without a name is shown as such, with its id', async (t) => {
  const text = textOf(await html('hostile-consent-nameless'))
  t.match(text, 'Allow an app without a name to use your account?')
  t.match(text, 'It registered automatically 1 minute ago as c_9Jp2bXqR7sTf and nobody')
})

t.test(
  'a long name is cut in the sentence, is isolated in its own direction, and is shown whole further down',
  async (t) => {
    const document = await html('hostile-consent')
    const heading = document.match(/<h1>.*<\/h1>/)?.[0] ?? ''
    t.match(heading, /^<h1>Allow <bdi>[^<]*…<\/bdi> to use your account\?<\/h1>$/)
    t.equal([...textOf(heading)].length, 'Allow  to use your account?'.length + 60)
    t.ok(decodeEntities(document).includes(`<dd><bdi>${hostileText}</bdi></dd>`))
  },
)

t.test('resources are named with their identifier', async (t) => {
  t.match(
    textOf(await html('consent-everything')),
    'The app asks to use Riverside School API https://api.riverside.example/v1 and Video archive https://video.riverside.example/.',
  )
  t.notMatch(await html('consent'), 'The app asks to use')
})

t.test(
  'a failed sign-in is announced to a screen reader, keeps the name and asks for the password',
  async (t) => {
    const document = await html('login-problem')
    t.match(document, /<p class="problem" id="problem" role="alert">The user name or the password/)
    const inputs = parseElements(document).filter(
      ({ attributes }) => attributes.get('aria-describedby') === 'problem',
    )
    t.same(
      inputs.map(({ attributes }) => [
        attributes.get('name'),
        attributes.get('value'),
        attributes.has('autofocus'),
      ]),
      [
        ['username', 'alice', false],
        ['password', undefined, true],
      ],
    )
  },
)

t.test('an error page states what happened, when to come back, and what the developer needs', async (t) => {
  const facts = {
    error: ['invalid_request, status 400', 'redirect_uri is not one of those', 'req-4f2a91c07b'],
    'error-later': ['Too many attempts', 'You can try again in 2 minutes.', 'req-4f2a91c07c'],
  }
  for (const [name, expected] of Object.entries(facts)) {
    const text = textOf(await html(name))
    for (const fact of expected) t.match(text, fact)
  }
})

t.test('the account page says through which app an API has what it exchanged', async (t) => {
  const text = textOf(await html('account-apps'))
  t.match(text, 'ThroughCourse Planner')
  t.equal(text.split('Through').length - 1, 1, 'and nothing of the others')
})
