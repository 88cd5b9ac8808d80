import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { addKeys, removeKey } from '../clients/keys.ts'
import { isObject } from '../domain/is-object.ts'
import { KeySetFault, type PublicKey, readKeyFile } from '../domain/key-set.ts'
import { changesClients, editClient, readClient, readsClients } from './client-operations.ts'
import { CommandFailed, WrongUsage } from './failure.ts'
import { addAnywhereFlags, type ServerFlags } from './files/open-target.ts'
import { addYesFlag, type DestructiveFlags, type OperatorFlags } from './flags.ts'
import { type Json, withOperator } from './operate.ts'
import { confirmOrAbort } from './operator.ts'
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
  addAnywhereFlags(add, keyHelp).action(keyAdd)
  const list = group.command('list <client_id>').description('list the public keys')
  addAnywhereFlags(list, keyHelp).action(keyList)
  const removal = group
    .command('remove <client_id> <kid>')
    .description('remove a key: what it signs is rejected')
  addAnywhereFlags(addYesFlag(removal), keyHelp).action(keyRemove)
}

/** `lychgate client key add`: adds keys to a client. */
async function keyAdd(clientId: string, file: string, flags: ServerFlags): Promise<void> {
  const added = readKeys(file)
  await changeKeys(clientId, flags, (keys) => addKeys(keys, added))
}

/** `lychgate client key list`: lists the keys of a client. */
async function keyList(clientId: string, flags: ServerFlags): Promise<void> {
  await withOperator(flags, readsClients, async (operator) =>
    print(keysOf(await readClient(operator, clientId)), flags),
  )
}

/** `lychgate client key remove`: removes a key; the last one stays. */
async function keyRemove(
  clientId: string,
  kid: string,
  flags: ServerFlags & DestructiveFlags,
): Promise<void> {
  await confirmOrAbort(flags, `Remove the key ${kid}? What it signs is rejected.`, 'nothing was removed')
  await changeKeys(clientId, flags, (keys) => removeKey(keys, kid))
}

async function changeKeys(
  clientId: string,
  flags: ServerFlags,
  change: (keys: readonly PublicKey[]) => readonly PublicKey[],
): Promise<void> {
  await withOperator(flags, changesClients, async (operator) => {
    const client = await editClient(operator, clientId, (found) => ({
      jwks: { keys: change(keysOf(found)) },
    }))
    print(keysOf(client), flags)
  })
}

/** @throws {CommandFailed} if the client has no keys of its own. */
function keysOf({ jwks }: Json): readonly PublicKey[] {
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
