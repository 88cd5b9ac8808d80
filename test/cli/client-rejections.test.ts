import t from 'tap'
import { newFolder } from '../helpers/command.ts'
import { runHere as run } from '../helpers/commands.ts'

const callback = 'https://app.example.com/callback'
const issuer = 'http://localhost:9400'

t.test('an invalid client is rejected in one line that names the reason, and nothing is added', async (t) => {
  const data = newFolder(t)
  const web = ['--name', 'App', '--redirect-uri', callback]
  const local = ['--name', 'App', '--redirect-uri', 'http://127.0.0.1/callback', '--auth', 'none']
  const to = (uri: string) => ['--name', 'App', '--redirect-uri', uri]
  const rejected: [string[], RegExp][] = [
    [['--name', ' ', '--redirect-uri', callback], /^name must have 1 to 200 characters/],
    [['--name', 'App'], /^redirect-uri is missing/],
    [to('https://app.example.com/*'), /^redirect-uri 1 must not have a \*: URIs are compared as text/],
    [
      [...web, '--post-logout-redirect-uri', 'https://*.example/'],
      /^post-logout-redirect-uri 1 must not have a \*/,
    ],
    [to('http://localhost:*/callback'), /^redirect-uri 1 must not have a \*/],
    [to(`${callback}?state=1`), /^redirect-uri 1 contains a reserved authorization response parameter/],
    [[...web, '--post-logout-redirect-uri', 'http://a.example/'], /^post-logout-redirect-uri 1 must be/],
    [
      [...web, '--auth', 'none', '--pkce', 'optional'],
      /^pkce may be optional for a confidential client only/,
    ],
    [[...local, '--consent', 'skip'], /^consent must be always for a public client with a loopback/],
    [[...web, '--scope', 'openid nope'], /^scope names something that is not in the scope catalogue/],
    [['--name', 'API', '--resource', issuer, '--auth', 'none'], /^auth must not be none/],
    [[...web, '--resource', issuer], /^a resource server has no redirect URIs/],
  ]
  for (const [flags, line] of rejected) {
    const { code, stdout, stderr } = await run(['client', 'add', '--data', data, ...flags])
    t.equal(code, 1, flags.join(' '))
    t.equal(stdout, '')
    t.equal(stderr.split('\n').length, 2, 'one line')
    t.match(stderr.replace(/^lychgate: /, ''), line)
  }
  t.strictSame(await run(['client', 'list', '--data', data]), { code: 0, stdout: '', stderr: '' })
})
