import { type Command, InvalidArgumentError, Option } from 'commander'
import { omitUndefined } from '../domain/omit-undefined.ts'
import { unlessMissing, WrongUsage } from './failure.ts'
import { addAnywhereFlags, type ServerFlags } from './files/open-target.ts'
import { addYesFlag, collect, type DestructiveFlags } from './flags.ts'
import { type Json, withOperator } from './operate.ts'
import { confirmOrAbort } from './operator.ts'
import { printList, printResult } from './print.ts'

const help = `
A scope that is stored belongs to the server like one of the configuration file (scopes): apps can ask for it, and
discovery names it. It is in force at the next request, without a restart. What the file sets wins, and is changed there.
Its words are what the consent page shows; --text gives them in another language.

Examples:
  lychgate scope add invoices:read --group Invoices --access read --description 'Amounts and due dates'
  lychgate scope set invoices:read --text 'description#de=Beträge und Fälligkeiten' --sensitive
  lychgate scope list
`

const deleteHelp = `
Apps that name it stay, and get tokens without it. What users granted loses it at the next use; if nothing is left of a
grant, its tokens are invalid. A resource that has it has to lose it first.

Example:
  lychgate scope delete invoices:read
`

/** Adds `lychgate scope …`: the scopes that apps can ask for. */
export function addScopeCommands(program: Command): void {
  const group = program
    .command('scope')
    .description('list the scopes, and add, change and delete stored ones')
  const list = group.command('list').description('list the scopes in force, and where each is set')
  addAnywhereFlags(list, help).action(scopeList)
  const show = group.command('show <scope>').description('show a stored scope')
  addAnywhereFlags(show, help).action(scopeShow)
  const add = group.command('add <scope>').description('add a scope')
  addAnywhereFlags(addWordFlags(add), help).action(scopeAdd)
  const set = group.command('set <scope>').description('change a stored scope; what is not named stays')
  addAnywhereFlags(addWordFlags(set), help).action(scopeSet)
  const remove = group.command('delete <scope>').description('delete a stored scope; grants lose it')
  addAnywhereFlags(addYesFlag(remove), deleteHelp).action(scopeDelete)
}

function addWordFlags(command: Command): Command {
  return command
    .option('--group <text>', 'the area of the scope, one row of the consent page')
    .addOption(new Option('--access <kind>', 'the column of the consent page').choices(['read', 'write']))
    .option('--description <text>', 'the sentence of the consent page')
    .option('--sensitive', 'the consent page marks it')
    .option('--no-sensitive', 'the consent page does not mark it')
    .option(
      '--text <name=text>',
      'its words in another language: description#de=…; may be repeated',
      collectText,
    )
}

function collectText(text: string, before: string[] = []): string[] {
  if (/^(?:group|description)#[^=]+=./s.test(text)) return collect(text, before)
  throw new InvalidArgumentError('It must be group#LANGUAGE=TEXT or description#LANGUAGE=TEXT.')
}

interface WordFlags extends ServerFlags {
  readonly group?: string
  readonly access?: 'read' | 'write'
  readonly description?: string
  readonly sensitive?: boolean
  readonly text?: readonly string[]
}

const reads = ['admin:clients:read']
const writes = [...reads, 'admin:clients:write']

/** Loaded late: `--help` needs none of it. */
const operations = () => import('../admin/operations/scopes.ts')
const missing = 'no scope of this name is stored; lychgate scope list shows where each is set'

/** `lychgate scope list`: lists the scopes in force. */
async function scopeList(flags: ServerFlags): Promise<void> {
  await withOperator(flags, reads, async ({ list }) => {
    const scopes = await list((await operations()).listScopes, {})
    const lineOf = ({ name, access, group, description, origin }: Json) => [
      String(name),
      String(access),
      String(group),
      String(description),
      setWhere(origin),
    ]
    printList(flags, scopes, (scope) => scope, lineOf)
  })
}

/** Says where a scope or resource is set. */
export function setWhere(origin: unknown): string {
  if (origin === 'stored') return 'stored'
  return origin === 'server' ? 'of the server' : 'set in the configuration file'
}

/** `lychgate scope show`: shows a stored scope. */
async function scopeShow(scope: string, flags: ServerFlags): Promise<void> {
  await withOperator(flags, reads, async ({ perform }) => {
    const found = await unlessMissing(perform((await operations()).readScope, { scope }), missing)
    printResult(flags, found, found)
  })
}

/** `lychgate scope add`: adds a scope. */
async function scopeAdd(name: string, flags: WordFlags): Promise<void> {
  const { group, access, description } = flags
  if (group === undefined || access === undefined || description === undefined)
    throw new WrongUsage(
      '--group, --access and --description are what the consent page shows: give all of them',
    )
  await withOperator(flags, writes, async ({ perform }) => {
    const added = await perform((await operations()).addScope, {}, { name, ...membersOf(flags) })
    printResult(flags, added, { added: name })
  })
}

/** `lychgate scope set`: changes a stored scope. */
async function scopeSet(scope: string, flags: WordFlags): Promise<void> {
  const body = membersOf(flags)
  if (Object.keys(body).length === 0) throw new WrongUsage('say what to change')
  await withOperator(flags, writes, async ({ perform }) => {
    const changed = perform((await operations()).changeScope, { scope }, body)
    printResult(flags, await unlessMissing(changed, missing), { changed: scope })
  })
}

/** `lychgate scope delete`: deletes a stored scope. */
async function scopeDelete(scope: string, flags: ServerFlags & DestructiveFlags): Promise<void> {
  await withOperator(flags, writes, async ({ perform }) => {
    const { readScope, removeScope } = await operations()
    await unlessMissing(perform(readScope, { scope }), missing)
    await confirmOrAbort(flags, `Delete the scope ${scope}? Apps and grants lose it.`, 'nothing was deleted')
    await perform(removeScope, { scope })
    printResult(flags, { scope, deleted: true }, { deleted: scope })
  })
}

function membersOf({ group, access, description, sensitive, text = [] }: WordFlags) {
  const tagged = text.map((pair) => {
    const at = pair.indexOf('=')
    return [pair.slice(0, at), pair.slice(at + 1)] as const
  })
  return { ...omitUndefined({ group, access, description, sensitive }), ...Object.fromEntries(tagged) }
}
