/** The command line and the admin API do the same: what one can do, the other can, or it says why not. */
import { globSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import type { Command } from 'commander'
import t from 'tap'
import { isObject } from '../../src/domain/is-object.ts'
import { declared } from '../../src/features.ts'
import { commandLine } from '../../src/main.ts'

/** Commands that work on this machine alone, and why. All others perform operations, on a store or on a server. */
const local: Readonly<Record<string, string>> = {
  serve: 'runs a server',
  init: 'makes the folder of a server',
  'dev report': 'reports the flows of a development server, which is on this machine',
  'dev record': 'writes a flow of a development server, which is on this machine, into files',
  'dev zoo': 'asks any server, as its clients do',
  token: 'is for development servers, which have /_dev/token',
  'keys list': 'opens the keys of a store, also while no server can start with them',
  'keys rotate': 'opens the keys of a store, also while no server can start with them',
  'keys retire': 'opens the keys of a store, also while no server can start with them',
  'keys reseal': 'opens the store with the secret of the host, and seals it again with a new one',
  'keys secret': 'makes a secret for the configuration of the host',
  backup: 'copies the database of the host',
  'store copy': 'moves the store of the host into another database',
  'store partition': 'changes how the database of the host stores its tables',
  'store resume': 'lets servers write again to a store of the host that was moved',
  'store distribute': 'spreads the store of the host over several machines, while no server runs',
  restore: 'replaces the database of the host',
  'config print': 'reads the configuration of the host',
  'config validate': 'reads the configuration of the host before a server has it',
  healthcheck: 'asks the server, for a container',
  doctor: 'examines the host, and works while no server does',
  prove: 'judges a server from outside, as any client sees it',
  completion: 'is for a shell',
}

/** Operations without a command, and why. */
const onlyApi: Readonly<Record<string, string>> = {
  createPersonalToken: 'its owner is signed in with every factor, in a browser',
  listClientDocuments: 'the command shows one document by its URL',
  listRecipes: 'commands read the recipes of their own version',
  previewClient: 'only a running server has what its features add to tokens',
  readSettings: 'lychgate config print reads those of its host',
}

/** The commands without those that only group others. */
function commandsOf(command: Command, path: readonly string[] = []): readonly (readonly [string, Command])[] {
  const inner = command.commands.flatMap((one) => commandsOf(one, [...path, one.name()]))
  return inner.length > 0 ? inner : [[path.join(' '), command]]
}

t.test('a command works on a running server, too, or says why not', async (t) => {
  const commands = commandsOf(await commandLine())
  const withoutServer = commands.filter(([, { options }]) => !options.some(({ long }) => long === '--server'))
  t.strictSame(withoutServer.map(([name]) => name).toSorted(), Object.keys(local).toSorted())
})

/** An operation, and what the text of a file that calls it has. */
type Called = readonly [id: string, call: RegExp]

/** Returns the operations of a value that a file exports. */
function operationsOf(name: string, value: unknown): readonly Called[] {
  if (typeof value === 'function')
    return /^(?:\w+Operations|\w+Locks|profile\w+)$/.test(name) ? operationsOf(name, value(declared)) : []
  if (!isObject(value)) return []
  if (typeof value['operationId'] === 'string')
    return [[value['operationId'], new RegExp(`\\b${name}\\b(?!:)`)]]
  return Object.entries(value).flatMap(([inner, one]): readonly Called[] =>
    isObject(one) && typeof one['operationId'] === 'string' ? [[one['operationId'], memberCall(inner)]] : [],
  )
}

/** Matches a member of a group of operations where it is taken out of the group: alone it may be any word. */
function memberCall(name: string): RegExp {
  const groups = String.raw`(?:perations\(\)\)|\buserActs|\bclients)`
  return new RegExp(String.raw`${groups}\.${name}\b|\{[^{}]*\b${name}\b[^{}]*\} = await \w*perations\(\)`)
}

t.test('a command performs every operation, or it says why not', async (t) => {
  const commands = globSync('src/cli/**/*.ts').map((file) => readFileSync(file, 'utf8'))
  const [known, performed] = [new Set<string>(), new Set<string>()]
  for (const file of globSync('src/admin/operations/*.ts')) {
    const exported: Readonly<Record<string, unknown>> = await import(`../../${file}`)
    const importers = commands.filter((text) => text.includes(`operations/${basename(file)}'`))
    // One file gives the others those on clients.
    const callers = /client/.test(file)
      ? [...importers, ...commands.filter((text) => text.includes('client-operations.ts'))]
      : importers
    for (const [id, call] of Object.entries(exported).flatMap(([name, value]) => operationsOf(name, value))) {
      known.add(id)
      if (callers.some((text) => call.test(text.replaceAll(/^import.*$/gm, '')))) performed.add(id)
    }
  }
  const { paths } = JSON.parse(readFileSync('openapi/admin.json', 'utf8')) as {
    paths: Readonly<Record<string, Readonly<Record<string, { operationId: string }>>>>
  }
  const routes = Object.values(paths).flatMap((one) =>
    Object.values(one).map(({ operationId }) => operationId),
  )
  t.strictSame(
    routes.filter((id) => id !== 'adminDescription').toSorted(),
    [...known].toSorted(),
    'each has a definition',
  )
  t.strictSame([...known].filter((id) => !performed.has(id)).toSorted(), Object.keys(onlyApi).toSorted())
})
