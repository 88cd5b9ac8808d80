import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { changeIntegration } from '../clients/integration.ts'
import { addKeys, removeKey } from '../clients/keys.ts'
import type { Decision } from '../domain/decision.ts'
import { isObject } from '../domain/is-object.ts'
import { KeySetFault, type PublicKey, readKeyFile } from '../domain/key-set.ts'
import type { Client } from '../domain/model.ts'
import { knownTo } from '../feature/known-to.ts'
import { declared } from '../features.ts'
import { CommandFailed, WrongUsage } from './failure.ts'
import { requireClient } from './find.ts'
import { addOperatorFlags, addYesFlag, type DestructiveFlags, type OperatorFlags } from './flags.ts'
import { withStore } from './open.ts'
import { confirmOrAbort, operatorContext } from './operator.ts'
import { printColumns, printJson } from './print.ts'

const keyHelp = `
For clients that authenticate by private_key_jwt. A file has a public key as PEM, a JWK or a JWK set.

Examples:
  lychgate client key add client_x1f8… next.pem
  lychgate client key list client_x1f8…
  lychgate client key remove client_x1f8… 2025 --yes
`

/**
 * Adds `lychgate client key …`: the public keys of a client, one by one, so that they can be replaced without a
 * pause.
 */
export function addClientKeyCommands(client: Command): void {
  const group = client.command('key').description('add, list and remove the public keys of a client')
  const add = group.command('add <client_id> <file>').description('add the public keys of a file')
  addOperatorFlags(add, keyHelp).action(keyAdd)
  const list = group.command('list <client_id>').description('list the public keys')
  addOperatorFlags(list, keyHelp).action(keyList)
  const removal = group
    .command('remove <client_id> <kid>')
    .description('remove a key: what it signs is rejected')
  addOperatorFlags(addYesFlag(removal), keyHelp).action(keyRemove)
}

/** `lychgate client key add`: adds keys to those that the client has. */
async function keyAdd(clientId: string, file: string, flags: OperatorFlags): Promise<void> {
  const added = readKeys(file)
  await changeKeys(clientId, flags, (keys) => addKeys(keys, added))
}

/** `lychgate client key list`: lists the keys of a client. */
async function keyList(clientId: string, flags: OperatorFlags): Promise<void> {
  await withStore(flags, async (store) =>
    print(keysOf(requireClient(await store.find('client', clientId))), flags),
  )
}

/** `lychgate client key remove`: removes a key; the last one stays. */
async function keyRemove(clientId: string, kid: string, flags: DestructiveFlags): Promise<void> {
  await confirmOrAbort(flags, `Remove the key ${kid}? What it signs is rejected.`, 'nothing was removed')
  await changeKeys(clientId, flags, (keys) => removeKey(keys, kid))
}

async function changeKeys(
  clientId: string,
  flags: OperatorFlags,
  change: (keys: readonly PublicKey[]) => readonly PublicKey[],
): Promise<void> {
  await withStore(flags, async (store, config) => {
    const client = await store.transact('client', clientId, (found): Decision<Client> => {
      const jwks = { keys: change(keysOf(requireClient(found))) }
      return changeIntegration(found, { jwks }, knownTo(config, declared), operatorContext())
    })
    print(keysOf(client), flags)
  })
}

/** @throws {CommandFailed} if the client has no keys of its own. */
function keysOf({ extra }: Client): readonly PublicKey[] {
  const jwks = extra?.['jwks']
  // `as`: only keys that were read are stored.
  if (isObject(jwks)) return jwks['keys'] as readonly PublicKey[]
  throw new CommandFailed('the client has no keys here: see --jwks and --jwks-uri of lychgate client set')
}

function readKeys(file: string): readonly PublicKey[] {
  try {
    return readKeyFile(readFileSync(file, 'utf8')).keys
  } catch (error) {
    throw new WrongUsage(error instanceof KeySetFault ? `${file} ${error.message}` : `${file} cannot be read`)
  }
}

function print(keys: readonly PublicKey[], flags: OperatorFlags): void {
  if (flags.json) printJson(keys)
  else printColumns(keys.map(({ kid = '', kty, crv = '', alg = '' }) => [kid, kty, crv || alg]))
}
