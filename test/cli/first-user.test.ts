import t from 'tap'
import { linkForFirstUser } from '../../src/cli/serve.ts'
import { insert } from '../../src/domain/decision.ts'
import { openStore } from '../../src/storage/open.ts'
import { systemRandom } from '../../src/system/system.ts'
import { findLink } from '../../src/users/one-time-links.ts'
import { createUser } from '../../src/users/rules/user.ts'
import { ended, newFolder, printed, start } from '../helpers/command.ts'
import { freePort } from '../helpers/free-port.ts'
import { UserAgent } from '../helpers/user-agent.ts'

const lifetimes = {
  firstUserSeconds: 10,
  invitationSeconds: 1,
  passwordResetSeconds: 1,
  emailVerificationSeconds: 1,
  emailUndoSeconds: 1,
}

t.test('serve on an empty store prints the link for the first user once', async (t) => {
  const [data, port] = [newFolder(t), await freePort()]
  const issuer = `http://localhost:${port}`
  const environment = {
    LYCHGATE_SECRET: 'a secret for tests that is long enough',
    LYCHGATE_DRAIN_SECONDS: '0',
  }
  const serve = () =>
    start(['serve', '--data', data, '--port', String(port), '--issuer', issuer], environment)
  const child = serve()
  t.teardown(() => child.kill('SIGKILL'))
  const end = ended(child)
  const url = await printed(child, /http\S+\/link\?code=lyc_link_[\w-]{43}(?=\n)/)
  t.ok(url.startsWith(`${issuer}/link`))
  const agent = new UserAgent(issuer)
  const landing = await agent.open(url)
  if (landing.at !== 'page') throw new Error('sent away')
  const password = 'a password nobody else has'
  const done = await agent.submit(landing.page, { username: 'ada', password, repeated: password })
  t.ok(done.at === 'page' && done.page.url.endsWith('/admin'))
  child.kill('SIGTERM')
  const { code, stderr, stdout } = await end
  t.equal(code, 0)
  t.match(stderr, /^lychgate: No users yet\. Open this link within 24 hours to create the first one:\n\S+\n$/)
  t.notOk(`${stdout}${stderr.replace(url, '')}`.includes(url.slice(-30)), 'and nowhere else')

  const again = serve()
  t.teardown(() => again.kill('SIGKILL'))
  const quiet = ended(again)
  while ((await fetch(`${issuer}/readyz`).catch(() => undefined))?.status !== 200) {
    if (again.exitCode !== null) throw new Error((await quiet).stderr)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  again.kill('SIGTERM')
  t.match(await quiet, { code: 0, stderr: /^$/ })
})

t.test('the link of a later start replaces the previous one, while there are no users', async (t) => {
  const store = await openStore('sqlite::memory:')
  t.teardown(() => store.close())
  const config = { issuer: 'https://id.example', lifetimes } as Parameters<typeof linkForFirstUser>[0]
  const link = (now: number) => linkForFirstUser(config, store, () => now, systemRandom)
  const stored = (url = '') => findLink(store, new URL(url).searchParams.get('code') ?? '')
  const first = await link(100)
  t.match(await stored(first), { purpose: 'first-user', createdAt: 100, expiresAt: 110 })
  const second = await link(101)
  t.equal(await stored(first), undefined)
  t.match(await stored(second), { purpose: 'first-user', createdAt: 101 })
  const user = createUser({ username: 'ada' }, systemRandom(16), 102)
  await store.write(insert('user', user))
  t.equal(await link(103), undefined)
})
