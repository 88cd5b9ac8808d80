import { writeFileSync } from 'node:fs'
import type { OperatorClientMembers } from '../../clients/core-members.ts'
import type { ClientVocabulary } from '../../clients/members.ts'
import {
  addOperatorClient,
  replaceOperatorClient,
  rotateClientSecret,
} from '../../clients/operator-client.ts'
import { clientOfRecipe } from '../../clients/recipes.ts'
import type { Group } from '../../domain/group.ts'
import type { Client } from '../../domain/model.ts'
import { secretMatches } from '../../domain/secret.ts'
import { systemRandom } from '../../system/system.ts'
import { namesOf } from '../../users/groups.ts'
import { mapRoles } from '../client-access.ts'
import { CommandFailed } from '../failure.ts'
import { requireAmong } from './groups.ts'
import { attempt, type Batch, contextOf, membersOfNew, pruningFile, resultOf, type Setting } from './plan.ts'
import { type Placed, type Secret, secretOf, type Wanted } from './read.ts'
import type { ClientEntry } from './schema.ts'
import { clientEntry, differences, type State } from './state.ts'

type Entry = Placed<ClientEntry>

/** What an entry says: the metadata, and the secret if it names one. */
interface Said {
  readonly request: OperatorClientMembers
  readonly secret: Secret | undefined
}

/** Plans what entries say about clients. @param groups Those there are when the clients are changed. */
export function planClients(
  setting: Setting,
  { clients, otherClientIds, known: vocabulary }: Pick<State, 'clients' | 'otherClientIds' | 'known'>,
  groups: readonly Group[],
  entries: readonly Entry[],
): readonly Batch[] {
  const byId = new Map(clients.map((client) => [client.id, client]))
  const entryOf = (client: Client) => clientEntry(client, namesOf(groups))
  return entries.flatMap((placed) => {
    const { client_id: clientId } = placed.entry
    return (
      attempt(setting, placed, () => {
        if (otherClientIds.has(clientId))
          throw new CommandFailed('client_id: this client registered itself, and changes itself')
        const said = { request: requestOf(placed.entry, groups), secret: secretOf(placed) }
        const before = byId.get(clientId)
        if (before === undefined) return addition(setting, placed, said, vocabulary, entryOf)
        return change(setting, placed, said, vocabulary, before, entryOf)
      }) ?? []
    )
  })
}

function requestOf(entry: ClientEntry, groups: readonly Group[]): OperatorClientMembers {
  const { client_id: _, locked: __, secret: ___, secretFile: ____, newSecretFile: _____, ...said } = entry
  const { for: app, url, ...members } = said
  if (app === undefined && url !== undefined)
    throw new CommandFailed('url: is for an app with a recipe (for)')
  const whole = app === undefined ? members : clientOfRecipe(app, url, members)
  const { allowed_groups: allowed, token_claims: rules, ...metadata } = whole
  // One that was deleted is named by its id: the client stays closed to everyone else.
  const idOf = (member: string) => (name: string) =>
    /^group_[\w-]{22}$/.test(name) ? name : requireAmong(groups, name, member)
  return {
    ...metadata,
    ...(Array.isArray(allowed) && { allowed_groups: allowed.map(String).map(idOf('allowed_groups')) }),
    ...(Array.isArray(rules) && { token_claims: mapRoles(rules, idOf('token_claims')) }),
  }
}

type EntryOf = (client: Client) => ClientEntry

function addition(
  { target, tell }: Setting,
  placed: Entry,
  { request, secret: ownSecret }: Said,
  vocabulary: ClientVocabulary,
  entryOf: EntryOf,
): Batch {
  const { client_id: clientId, locked } = placed.entry
  const context = contextOf(placed)
  const fresh = { id: clientId, secret: ownSecret?.text ?? systemRandom(32) }
  const { client, secret } = addOperatorClient(request, vocabulary, fresh, context)
  if (ownSecret !== undefined && secret === undefined)
    throw new CommandFailed('secret: a public client has no secret')
  const after = locked === true ? { ...client, lockedAt: context.at } : client
  const entry = { ...entryOf(after), ...(secret !== undefined && { secret: newSecret(ownSecret) }) }
  return {
    changes: [{ action: 'add', kind: 'client', name: clientId, members: membersOfNew(entry) }],
    write: async () => {
      // The file first: a client without its secret would be of no use.
      if (ownSecret?.target !== undefined)
        writeFileSync(ownSecret.target, `${secret}\n`, { flag: 'wx', mode: 0o600, flush: true })
      await target.addClient(after, secret, placed.file)
      if (secret !== undefined && ownSecret === undefined)
        tell({
          client_id: clientId,
          secret: `was not shown; lychgate client rotate-secret ${clientId} makes another`,
        })
    },
  }
}

function newSecret(given: Secret | undefined): string {
  if (given === undefined) return 'made, and not shown'
  return given.target === undefined ? `that of ${given.from}` : `made, and written to ${given.from}`
}

function change(
  { target }: Setting,
  placed: Entry,
  { request, secret }: Said,
  vocabulary: ClientVocabulary,
  before: Client,
  entryOf: EntryOf,
): Batch | [] {
  const context = contextOf(placed)
  const replaced = resultOf(replaceOperatorClient(before, request, vocabulary, context))
  const isChanged = differences(entryOf(before), entryOf(replaced)).length > 0
  const { lockedAt, ...unlocked } = isChanged ? replaced : before
  const isLocked = placed.entry.locked ?? lockedAt !== undefined
  const after = isLocked ? { ...unlocked, lockedAt: lockedAt ?? context.at } : unlocked
  const isSecretReplaced = secret?.text !== undefined && !secretMatches(secret.text, before.secretHash)
  const text = isSecretReplaced ? secret.text : undefined
  if (text !== undefined) resultOf(rotateClientSecret(after, text, context))
  const members = [
    ...differences(entryOf(before), entryOf(after)),
    ...(isSecretReplaced ? [{ member: 'secret', before: 'another', after: newSecret(secret) }] : []),
  ]
  if (members.length === 0) return []
  return {
    changes: [{ action: 'change', kind: 'client', name: before.id, members }],
    write: () => target.changeClient({ before, after, file: placed.file }, text),
  }
}

/** Plans the removal of the clients that no entry describes. Those that registered themselves stay. */
export function pruneClients(
  { target }: Setting,
  clients: readonly Client[],
  entries: Wanted,
): readonly Batch[] {
  const named = new Set(entries.clients?.map(({ entry }) => entry.client_id))
  const { callerId } = target
  if (callerId !== undefined && !named.has(callerId) && clients.some(({ id }) => id === callerId))
    throw new CommandFailed(`${callerId} calls the admin API, and no file has it: it would delete itself`)
  return clients
    .filter(({ id }) => !named.has(id))
    .map((client) => ({
      changes: [{ action: 'delete', kind: 'client', name: client.id, members: [] }],
      write: () => target.deleteClient(client, pruningFile(entries, 'clients')),
    }))
}
