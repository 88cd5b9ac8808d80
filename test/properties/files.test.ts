/** Whatever files describe: applied, exported and applied to another server, it is the same. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { newFolder } from '../helpers/command.ts'
import { runHere } from '../helpers/commands.ts'
import { fc } from '../helpers/generated.ts'

const groupNames = ['staff', 'teachers', 'écoliers', 'A/B']
const text = fc.string({
  unit: fc.constantFrom(...'ab å中:#-\'"{}[]&*!|>%@`?, '),
  minLength: 1,
  maxLength: 12,
})
const line = text.map((one) => `x${one}x`)
const some = (names: readonly string[]) => fc.uniqueArray(fc.constantFrom(...names), { maxLength: 3 })

const state = fc.uniqueArray(fc.constantFrom(...groupNames), { minLength: 1 }).chain((names) =>
  fc.record({
    // A parent comes before its children: no circles.
    groups: fc.tuple(
      ...names.map((name, index) =>
        fc.record(
          {
            name: fc.constant(name),
            description: line,
            parent: fc.constantFrom(...names.slice(0, index), ...(index === 0 ? [undefined] : [])),
          },
          { requiredKeys: ['name'] },
        ),
      ),
    ),
    users: fc.uniqueArray(
      fc.record(
        {
          username: fc.constantFrom('ann', 'ben', 'cy', 'dé', '1', 'true', 'null'),
          email: fc.constantFrom('a@example.org', 'b@example.org', ''),
          email_verified: fc.boolean(),
          locked: fc.boolean(),
          groups: some(names),
          claims: fc.record({ name: line, nickname: line }, { requiredKeys: [] }),
        },
        { requiredKeys: ['username'] },
      ),
      { selector: ({ username }) => username, maxLength: 4 },
    ),
    clients: fc.uniqueArray(
      fc.record(
        {
          client_id: fc.constantFrom('app', 'app.2', 'A-b_c', '0'),
          client_name: line,
          redirect_uris: fc.constant(['https://app.example/cb']),
          'client_name#de': line,
          scope: fc.constantFrom('openid', 'openid courses:read'),
          consent: fc.constantFrom('skip', 'remember', 'always'),
          pkce: fc.constantFrom('required', 'optional'),
          contacts: fc.array(line, { maxLength: 2 }),
          locked: fc.boolean(),
          dpop_bound_access_tokens: fc.boolean(),
          allowed_groups: some(names),
          token_claims: fc.constantFrom([{ claim: 'roles', roles: { [names[0] ?? '']: 'Editor' } }], []),
        },
        { requiredKeys: ['client_id', 'client_name', 'redirect_uris'] },
      ),
      { selector: ({ client_id }) => client_id, maxLength: 3 },
    ),
  }),
)
const distinct = state.filter(({ users }) => {
  const emails = users.flatMap(({ email }) => email || [])
  return new Set(emails).size === emails.length
})

function place() {
  const folder = newFolder(t)
  const environment = { LYCHGATE_STORE: `sqlite:${folder}/lychgate.db`, LYCHGATE_DATA: folder }
  const ok = async (...args: string[]) => {
    const { code, stdout, stderr } = await runHere(args, { environment })
    if (code !== 0) throw new Error(`${args.join(' ')}: ${code} ${stderr}${stdout}`)
    return stdout
  }
  const applied = async (content: unknown) => {
    const file = join(folder, 'state.json')
    writeFileSync(file, JSON.stringify(content))
    await ok('apply', '-f', file, '--prune', '--yes')
    return file
  }
  return { folder, ok, applied }
}

t.test('random states survive export and apply, and one replaces another', async (t) => {
  await fc.assert(
    fc.asyncProperty(distinct, distinct, async (first, second) => {
      const [one, other] = [place(), place()]
      const file = await one.applied(first)
      t.equal(await one.ok('apply', '-f', file, '--dry-run', '--prune'), 'nothing to change\n')
      const exported = join(one.folder, 'exported')
      await one.ok('export', '--to', exported)
      t.equal(await one.ok('apply', '-f', exported, '--dry-run', '--prune'), 'nothing to change\n')
      await other.ok('apply', '-f', exported)
      t.equal(await other.ok('export'), await one.ok('export'))
      // The users stay: an address that another one had would have to be given up first.
      const next = { ...second, users: first.users }
      const known = new Set(second.groups.map(({ name }) => name))
      const users = next.users.map((user) => ({
        ...user,
        groups: (user.groups ?? []).filter((name) => known.has(name)),
      }))
      const replacing = await one.applied({ ...next, users })
      t.equal(await one.ok('apply', '-f', replacing, '--dry-run', '--prune'), 'nothing to change\n')
    }),
    { numRuns: 12 },
  )
})
