import { type Command, Option } from 'commander'
import { omitUndefined } from '../domain/omit-undefined.ts'
import { unlessMissing, WrongUsage } from './failure.ts'
import { addAnywhereFlags, type ServerFlags } from './files/open-target.ts'
import { addYesFlag, type DestructiveFlags, parseSpan } from './flags.ts'
import { type Json, withOperator } from './operate.ts'
import { confirmOrAbort } from './operator.ts'
import { printList, printResult } from './print.ts'
import { setWhere } from './scope.ts'

const help = `
A resource is an API that tokens can be issued for (RFC 8707): apps send its identifier as \`resource\`. A stored one is in
force at the next request, without a restart. What the configuration file sets (resources) wins, and is changed there.
Its own server introspects tokens as a client: lychgate client add --resource.

Examples:
  lychgate resource add https://api.example.com --name 'Invoices' --scope 'invoices:read invoices:write'
  lychgate resource set https://api.example.com --token-format jwt --access-token-lifetime 10m
  lychgate resource list
`

const deleteHelp = `
Apps that name it stay. Grants for it alone are invalid at their next use; others lose it. A JWT access token that an
API verifies by itself is valid until it expires.

Example:
  lychgate resource delete https://api.example.com
`

/** Adds `lychgate resource …`: the APIs that tokens can be issued for. */
export function addResourceCommands(program: Command): void {
  const group = program
    .command('resource')
    .description('list the protected APIs, and add, change and delete stored ones')
  const list = group.command('list').description('list the APIs in force, and where each is set')
  addAnywhereFlags(list, help).action(resourceList)
  const show = group.command('show <identifier>').description('show a stored API')
  addAnywhereFlags(show, help).action(resourceShow)
  const add = group.command('add <identifier>').description('add an API')
  addAnywhereFlags(addMemberFlags(add), help).action(resourceAdd)
  const set = group.command('set <identifier>').description('change a stored API; what is not named stays')
  addAnywhereFlags(addMemberFlags(set), help).action(resourceSet)
  const remove = group.command('delete <identifier>').description('delete a stored API; grants lose it')
  addAnywhereFlags(addYesFlag(remove), deleteHelp).action(resourceDelete)
}

function addMemberFlags(command: Command): Command {
  return command
    .option('--name <text>', 'its name on the consent page')
    .option('--scope <names>', 'the scopes that it understands, separated by spaces')
    .addOption(new Option('--token-format <format>', 'of its access tokens').choices(['opaque', 'jwt']))
    .option('--access-token-lifetime <duration>', 'how long its access tokens are valid', parseSpan)
}

interface MemberFlags extends ServerFlags {
  readonly name?: string
  readonly scope?: string
  readonly tokenFormat?: 'opaque' | 'jwt'
  readonly accessTokenLifetime?: number
}

const reads = ['admin:clients:read']
const writes = [...reads, 'admin:clients:write']

/** Loaded late: `--help` needs none of it. */
const operations = () => import('../admin/operations/resources.ts')
const missing = 'no resource with this identifier is stored; lychgate resource list shows where each is set'

/** `lychgate resource list`: lists the resources in force. */
async function resourceList(flags: ServerFlags): Promise<void> {
  await withOperator(flags, reads, async ({ list }) => {
    const resources = await list((await operations()).listResources, {})
    const lineOf = ({ identifier, name, token_format, scopes, origin }: Json) => [
      String(identifier),
      String(name),
      String(token_format),
      countOfScopes((scopes as readonly string[]).length), // as a resource is described
      setWhere(origin),
    ]
    printList(flags, resources, (resource) => resource, lineOf)
  })
}

/** `lychgate resource show`: shows a stored resource. */
async function resourceShow(resource: string, flags: ServerFlags): Promise<void> {
  await withOperator(flags, reads, async ({ perform }) => {
    const found = await unlessMissing(perform((await operations()).readResource, { resource }), missing)
    printResult(flags, found, found)
  })
}

/** `lychgate resource add`: adds a resource. */
async function resourceAdd(identifier: string, flags: MemberFlags): Promise<void> {
  if (flags.name === undefined || flags.scope === undefined)
    throw new WrongUsage('--name and --scope are needed')
  await withOperator(flags, writes, async ({ perform }) => {
    const added = await perform((await operations()).addResource, {}, { identifier, ...membersOf(flags) })
    printResult(flags, added, { added: identifier })
  })
}

/** `lychgate resource set`: changes a stored resource. */
async function resourceSet(resource: string, flags: MemberFlags): Promise<void> {
  const body = membersOf(flags)
  if (Object.keys(body).length === 0) throw new WrongUsage('say what to change')
  await withOperator(flags, writes, async ({ perform }) => {
    const changed = perform((await operations()).changeResource, { resource }, body)
    printResult(flags, await unlessMissing(changed, missing), { changed: resource })
  })
}

/** `lychgate resource delete`: deletes a stored resource. */
async function resourceDelete(resource: string, flags: ServerFlags & DestructiveFlags): Promise<void> {
  await withOperator(flags, writes, async ({ perform }) => {
    const { readResource, removeResource } = await operations()
    await unlessMissing(perform(readResource, { resource }), missing)
    await confirmOrAbort(flags, `Delete the resource ${resource}? Grants lose it.`, 'nothing was deleted')
    await perform(removeResource, { resource })
    printResult(flags, { resource, deleted: true }, { deleted: resource })
  })
}

function membersOf({ name, scope, tokenFormat, accessTokenLifetime }: MemberFlags) {
  return omitUndefined({
    name,
    scopes: scope?.split(' ').filter((one) => one !== ''),
    token_format: tokenFormat,
    access_token_seconds: accessTokenLifetime,
  })
}

function countOfScopes(count: number): string {
  return `${count} ${count === 1 ? 'scope' : 'scopes'}`
}
