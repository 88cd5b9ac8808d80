/** Files of src are short enough to read at once, and long enough to be worth a name. Each exception says why. */
import { globSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import t from 'tap'

const longest = 300
const shortest = 30
/** A specification that was added to the first ones. */
const longestSpec = 350
/**
 * What each part of src may have, in lines. A part grows with what it offers, and its number with it, in the same commit.
 * Folders that no part names are "the rest", so that none is forgotten.
 */
const mostLines = {
  protocol: {
    folders: /^(?:domain|specs|clients|keys|guard|outbound)$/,
    // 1,380 of them are the client side: sign-in with an upstream.
    lines: 21_760,
  },
  'users and pages': { folders: /^(?:users|pages)$/, lines: 11_280 },
  'what operators use': { folders: /^(?:admin|cli|doctor)$/, lines: 21_790 },
  dev: { folders: /^dev$/, lines: 6_550 },
  'forward auth': { folders: /^forward-auth$/, lines: 1_030 },
  // 200 of them replay recorded clients.
  prove: { folders: /^prove$/, lines: 4_200 },
  // Partitions take 250 of them.
  storage: { folders: /^storage$/, lines: 6_050 },
}
const restOfLines = 7_830

/** Longer files: what they list would have to be read together anyway. */
const long = {
  'src/config/schema.ts': 'every option, with its unit and default',
  'src/storage/statements.ts': 'every statement, for both databases',
  'src/storage/store.ts': 'all that the rest may ask of the storage',
  'src/storage/rows.ts': 'how each row becomes a record and back',
  'src/storage/reads.ts': 'every read, for both databases',
  'src/domain/model.ts': 'what is stored, type by type',
  'src/domain/group.ts': 'one tree: each of its rules is about all groups',
  'src/domain/authorization-request.ts': 'one request, check by check in the order of RFC 6749',
  'src/clients/core-members.ts': 'every member of client metadata that the core knows',
  'src/clients/operator-client.ts': 'every flag by which an operator adds or changes a client',
  'src/admin/operations/schema.ts': 'every request and response of the admin API',
  'src/settings/checks.ts': 'every check of the settings against each other',
  'src/users/rules/user.ts': 'every change of a user',
}

/** Shorter files, each with the reason of its group. */
const short = {
  'app.ts reads the declaration of a folder without what it declares': ['src/**/feature.ts'],
  'one definition that several folders import': [
    'src/domain/{is-object,omit-undefined,map-defined,well-known,finding,durations,secret-change}.ts',
    'src/config/setting.ts',
    'src/system/{version,count}.ts',
    'src/feature/client-vocabulary.ts',
    'src/admin/operations/event-lines.ts',
    'src/http/{host-names,outgoing}.ts',
    'src/users/{reading,rules/typed-code,policy/requirement}.ts',
  ],
  'a plugin or the rules of a specification, which are in files of these names': [
    'src/specs/{rfc9207-issuer,jarm}/plugin.ts',
    'src/specs/rfc7523-client-assertions/rules/registration.ts',
  ],
  'two endpoints or pages of their folder share it': [
    'src/specs/rfc7591-registration/json-object.ts',
    'src/specs/rfc8414-metadata/published-keys.ts',
    'src/admin/pages/version.ts',
    'src/dev/list-page.ts',
  ],
  'the list of what its folder has': ['src/users/sealed-kinds.ts'],
  'a page is a file': ['src/pages/home.ts'],
  'loaded alone, before or instead of the rest': [
    'src/{system/thread-pool,one-file}.ts',
    'src/observability/is-traced.ts',
    'src/observability/measured-store.ts',
  ],
  'the schema by which one dialect migrates': ['src/storage/sqlite/schema.ts'],
}

/** Specifications over the limit, and what takes the place. */
const largeSpecs = {
  'oidc-client': 'the client side of discovery, code flow, ID Token and UserInfo, and the links of users',
  'rfc6749-authorization': 'the core that the others extend',
  'rfc7591-registration': 'with RFC 7592, which reads and changes what it registers',
  'rfc8628-device-grant': 'three pages for users, a page for developers, and the limits of guessing',
  'rfc7523-client-assertions': 'authentication of a client, and grants by issuers that an operator trusts',
  'client-id-metadata': 'fetches documents of strangers: the policy, the cache and the denied ones',
  'rfc9101-request-objects': 'by value and by reference, with the rules of OpenID Connect Core',
  'fapi2-security-profile': 'a profile of the server, and one of a client',
  'oidc-backchannel-logout': 'deliveries that survive a restart, with retries',
}

const files = globSync('src/**/*.ts').sort()
const linesOf = new Map(files.map((file) => [file, readFileSync(file, 'utf8').split('\n').length - 1]))
const withLines = (fits: (lines: number) => boolean) => files.filter((file) => fits(linesOf.get(file) ?? 0))

t.test('a file has at most 300 lines, or a reason', async (t) => {
  t.strictSame(
    withLines((lines) => lines > longest),
    Object.keys(long).sort(),
  )
})

t.test('a file has at least 30 lines, or a reason', async (t) => {
  const explained = new Set(Object.values(short).flatMap((patterns) => globSync(patterns)))
  const small = withLines((lines) => lines < shortest)
  t.strictSame(
    small.filter((file) => !explained.has(file)),
    [],
  )
  const stale = [...explained].filter((file) => !small.includes(file) && !file.endsWith('/feature.ts'))
  t.strictSame(stale, [], 'every reason is needed')
})

t.test('a specification has at most 350 lines, or a reason', async (t) => {
  const specs = globSync('src/specs/*').map((folder) => basename(folder))
  const linesIn = (folder: string) =>
    files
      .filter((file) => file.startsWith(`src/specs/${folder}/`))
      .reduce((sum, file) => sum + (linesOf.get(file) ?? 0), 0)
  t.ok(specs.length > 10)
  t.strictSame(specs.filter((folder) => linesIn(folder) > longestSpec).sort(), Object.keys(largeSpecs).sort())
})

t.test('the average file is near 120 lines', async (t) => {
  const average = [...linesOf.values()].reduce((sum, lines) => sum + lines, 0) / files.length
  t.ok(average > 100 && average < 130, average.toFixed(0))
})

t.test('no part of src grows unnoticed', async (t) => {
  const sums = new Map<string, number>()
  for (const [file, lines] of linesOf) {
    const folder = file.split('/').at(1) ?? ''
    const part = Object.entries(mostLines).find(([, { folders }]) => folders.test(folder))?.[0] ?? 'the rest'
    sums.set(part, (sums.get(part) ?? 0) + lines)
  }
  t.strictSame([...sums.keys()].sort(), [...Object.keys(mostLines), 'the rest'].sort(), 'each part has files')
  for (const [part, { lines }] of Object.entries({ ...mostLines, 'the rest': { lines: restOfLines } })) {
    t.ok((sums.get(part) ?? 0) <= lines, `${part}: ${sums.get(part)} lines`)
  }
})
