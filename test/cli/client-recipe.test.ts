import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { newFolder } from '../helpers/command.ts'
import { runHere as run } from '../helpers/commands.ts'

const url = 'https://photos.example.com'

t.test('a client is added for a well-known app, and the settings of the app are printed', async (t) => {
  const data = newFolder(t)
  const { code, stdout } = await run(['client', 'add', '--data', data, '--for', 'immich', '--url', `${url}/`])
  t.equal(code, 0)
  const [, id = '', secret = ''] = /client_id +(\S+)\nclient_secret +(\S+)/.exec(stdout) ?? []
  t.match(stdout, `${url}/auth/login ${url}/user-settings app.immich:///oauth-callback`)
  t.match(stdout, 'The recipe is for Immich 3.1 (not tried)')
  t.match(stdout, `  Client ID: ${id}\n  Client Secret: ${secret}\n`)
  const named = await run([
    'client',
    'add',
    '--data',
    data,
    '--json',
    '--for',
    'immich',
    '--url',
    url,
    '--name',
    'Ours',
  ])
  t.match(JSON.parse(named.stdout), {
    client_name: 'Ours',
    scope: 'openid profile email',
    consent: 'remember',
  })
})

t.test(
  'what a recipe weakens is printed and asked, and nothing is added without a confirmation',
  async (t) => {
    const data = newFolder(t)
    const add = (...flags: string[]) => run(['client', 'add', '--data', data, '--for', 'gitea', ...flags])
    const asked = await add('--url', url)
    t.not(asked.code, 0)
    t.match(asked.stderr, /^Gitea: PKCE is optional.+\nlychgate: cannot ask .+ use --yes\n$/s)
    t.equal((await run(['client', 'list', '--data', data, '--json'])).stdout.trim(), '[]')
    const added = await add('--url', url, '--yes', '--json')
    t.match(JSON.parse(added.stdout), {
      pkce: 'optional',
      redirect_uris: [`${url}/user/oauth2/lychgate/callback`],
    })
  },
)

t.test('wrong names and addresses are explained', async (t) => {
  const data = newFolder(t)
  for (const [flags, why] of [
    [['--for', 'nope'], /for must be an app with a recipe: actual, /],
    [['--for', 'immich'], /url must be the https address/],
    [['--for', 'immich', '--url', 'http://photos.home'], /url must be the https address/],
    [['--name', 'X', '--url', url], /--url is for --for/],
  ] as const) {
    const { code, stderr } = await run(['client', 'add', '--data', data, ...flags])
    t.not(code, 0)
    t.match(stderr, why)
  }
})

t.test('a file names the app, and what it says itself counts more', async (t) => {
  const folder = newFolder(t)
  const files = join(folder, 'files')
  mkdirSync(files)
  const environment = {
    LYCHGATE_STORE: `sqlite:${folder}/lychgate.db`,
    LYCHGATE_DATA: folder,
    LYCHGATE_ISSUER: 'http://localhost:9400',
  }
  const apply = async (client: string, ...flags: string[]) => {
    writeFileSync(
      join(files, 'all.yaml'),
      `clients:\n  - { client_id: photos, ${client}, newSecretFile: secret }\n`,
    )
    return run(['apply', '-f', files, '--yes', ...flags], { environment })
  }
  const added = await apply(`for: immich, url: '${url}'`)
  t.equal(added.code, 0, added.stderr)
  const again = await apply(`for: immich, url: '${url}'`, '--dry-run')
  t.match(again.stdout, /unchanged|nothing|0 /, again.stdout)
  const renamed = await apply(`for: immich, url: '${url}', client_name: Fotos`)
  t.match(renamed.stdout, /client_name: Immich → Fotos/)
  t.match((await apply(`client_name: X, url: '${url}'`)).stderr, /url: is for an app with a recipe/)
  t.match((await apply('consent: always')).stderr, /client_name: is missing/)
})
