import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type BucketAccess, BucketFailed, openBucket } from '../outbound/bucket.ts'
import { loadConfig } from '../settings/load.ts'
import { type CopyContents, copyDatabase } from '../storage/sqlite/backup.ts'
import { CommandFailed, WrongUsage } from './failure.ts'
import type { LocationFlags } from './flags.ts'

/** `s3://BUCKET/KEY`, with the names that every server of the protocol takes. */
const address = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/((?:[\w.-]+\/)*[\w.-]*))?$/

/** The copies that are in a bucket. */
export interface CopyBucket {
  /** The key of the address, or what keys begin with. */
  readonly key: string
  /** Returns a key as an address. */
  addressOf(key: string): string
  names(): Promise<readonly string[]>
  /** Copies the database, and uploads the copy. */
  add(key: string, database: string, options: { readonly replace: boolean }): Promise<CopyContents>
  delete(name: string): Promise<void>
  /** Downloads an object next to the database, for as long as `use` takes. */
  withDownload<T>(key: string, database: string, use: (file: string) => Promise<T>): Promise<T>
}

/**
 * Opens the bucket of an address, with the credentials of the configuration.
 * @throws {CommandFailed} if the address or an option is missing or wrong.
 */
export function openCopies(target: string, flags: LocationFlags): CopyBucket {
  const [, name, key = ''] = address.exec(target) ?? []
  if (name === undefined || key.split('/').some((part) => part === '.' || part === '..'))
    throw new WrongUsage(`file: ${target} is no address of a bucket; write s3://BUCKET/lychgate.db`)
  const bucket = openBucket(name, accessOf(flags))
  const addressOf = (part: string) => `s3://${name}/${part}`
  return {
    key,
    addressOf,
    names: async () => {
      const keys = await attempt(() => bucket.keys(key))
      return keys.map((found) => found.slice(key.length))
    },
    add: async (own, database, { replace }) =>
      inFolder(`${database}.upload`, async (file) => {
        const contents = copyDatabase(database, file)
        await attempt(() => bucket.put(own, file, contents.bytes, { replace }), addressOf(own))
        return contents
      }),
    delete: (own) => attempt(() => bucket.delete(key + own)),
    withDownload: (own, database, use) =>
      inFolder(`${database}.download`, async (file) => {
        await attempt(() => bucket.get(own, file), addressOf(own))
        return use(file)
      }),
  }
}

function accessOf({ config: path, data }: LocationFlags): BucketAccess {
  const { backup } = loadConfig({ mode: 'dev', flags: { data }, environment: process.env, file: path })
  const { endpoint, region, accessKey, secretKey } = backup
  if (endpoint === undefined || accessKey === undefined || secretKey === undefined)
    throw new CommandFailed('backup.endpoint: is missing; name the server of the bucket, and its two keys')
  return { endpoint, region, accessKey, secretKey }
}

/** Uses a file in a folder that only its owner reads, which a killed command may have left. */
async function inFolder<T>(folder: string, use: (file: string) => Promise<T>): Promise<T> {
  const remove = () => rmSync(folder, { recursive: true, force: true })
  try {
    remove()
    mkdirSync(folder, { mode: 0o700 })
    return await use(join(folder, 'lychgate.db'))
  } finally {
    remove()
  }
}

async function attempt<T>(act: () => Promise<T>, at = ''): Promise<T> {
  try {
    return await act()
  } catch (cause) {
    if (!(cause instanceof BucketFailed)) throw cause
    if (cause.status === 412)
      throw new CommandFailed(`file: ${at} exists; name another, or replace it with --force`)
    throw new CommandFailed(`bucket: ${cause.message}`, { cause })
  }
}
