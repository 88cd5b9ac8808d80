/**
 * The files of the tree that the code reads, for every kind of build: all that is in the folders it reads from, so that
 * a new file or folder there is in the builds, too.
 */
import { readdirSync } from 'node:fs'
import { join, relative } from 'node:path'
import { assetFiles, assetFolders } from '../../src/system/assets.ts'
import { root } from './bundle.ts'

/** What these folders have for the sources alone: generated types, and the schemas that drizzle-kit compares. */
const forSourcesOnly = /\.ts$|_snapshot\.json$/

/** Returns the paths of these files from the top of the project, in order. */
export function assetPaths(): readonly string[] {
  const inFolders = assetFolders.flatMap((folder) =>
    filesIn(join(root, folder)).map((path) => `${folder}/${path}`),
  )
  return [...assetFiles, ...inFolders].filter((path) => !forSourcesOnly.test(path)).sort()
}

/** Lists every file in a folder and in the folders below it, in order, without hidden ones. */
export function filesIn(folder: string): readonly string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile() && !entry.name.startsWith('.'))
    .map(({ parentPath, name }) => relative(folder, join(parentPath, name)))
    .sort()
}
