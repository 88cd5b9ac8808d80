import t from 'tap'
import { newFolder } from '../helpers/command.ts'
import { runHere as run } from '../helpers/commands.ts'

const data = newFolder(t)
const token = (...args: string[]) => run(['registration', 'token', ...args, '--data', data])

t.test('an operator creates, lists and revokes initial access tokens', async (t) => {
  t.strictSame(JSON.parse((await token('list', '--json')).stdout), [])
  const made = JSON.parse(
    (
      await token(
        'create',
        '--redirects',
        'https',
        '--uses',
        '3',
        '--expires',
        '30d',
        '--name',
        'Team',
        '--json',
      )
    ).stdout,
  )
  t.match(made, { name: 'Team', redirects: 'https', pkce: 'required', uses: 3, used: 0 })
  t.notOk('legacy_audience' in made, 'only what an operator names is set')
  t.match(made.initial_access_token, /^lyc_initial_[\w-]{43}$/)
  t.equal(made.expires_at - made.created_at, 30 * 86_400)
  const shown = await token('create', '--pkce', 'optional', '--legacy-audience', 'true')
  t.match(shown.stdout, /initial_access_token +lyc_initial_/)
  t.match(shown.stdout, /never shown again/)
  const listed = await token('list')
  t.match(listed.stdout, /0 of 3 used .* Team/)
  t.match(listed.stdout, /https, PKCE optional, legacy_audience true +0 of 1 used/)
  t.notMatch(listed.stdout, 'lyc_initial_', 'a list has no token')
  t.match(await token('revoke', made.token_id), { code: 1, stderr: /--yes/ })
  t.match(await token('revoke', made.token_id, '--yes'), { code: 0, stdout: made.token_id })
  t.match(await token('revoke', made.token_id, '--yes'), { code: 1, stderr: /no initial access token/ })
  t.equal(JSON.parse((await token('list', '--json')).stdout).length, 1)
  const events = JSON.parse((await run(['audit', '--json', '--data', data])).stdout)
  t.match(JSON.stringify(events), /registration-token-made.*registration-token-revoked/)
  t.notMatch(JSON.stringify(events), 'lyc_initial_')
})

t.test('wrong flags are named', async (t) => {
  for (const [args, words] of [
    [['--redirects', 'any'], /https, loopback/],
    [['--legacy-audience', 'yes'], /true, false/],
    [['--uses', '0'], /at least 1/],
    [['--expires', '0s'], /longer/],
    [['--expires', '30'], /unit/],
    [['--name', 'a\u202eb'], /invisible/],
  ] as const)
    t.match(await token('create', ...args), { code: 64, stderr: words }, args.join(' '))
})
