import { existsSync, readdirSync, readFileSync } from 'node:fs'
// `getAssetKeys` came with Node 24.8; only executables, which have a later one, call it.
import sea, { getRawAsset, isSea } from 'node:sea'
import { fileURLToPath } from 'node:url'

/** Folders of files that the code reads. Builds contain all of each. */
export const assetFolders = ['views', 'drizzle', 'openapi', 'src/clients/recipes'] as const
/** Files outside of them that the code reads. */
export const assetFiles = ['package.json', 'src/users/common-passwords.txt'] as const

type InFolders = `${(typeof assetFolders)[number]}/${string}`
/** The path of a file that builds contain, or make. */
type AssetPath =
  | InFolders
  | (typeof assetFiles)[number]
  | `dist/docs/${string}.gz`
  | `node_modules/${string}`
  | `${string}.node`

/** The top of the project: above `dist`, where the bundles are, or above `src/system`. */
function top(): URL {
  const above = new URL('../', import.meta.url)
  return existsSync(new URL('package.json', above)) ? above : new URL('../', above)
}

/**
 * Reads a file that belongs to the code, by its path from the top of the project, such as `views/style.css`. It is
 * next to `src` or `dist`, or inside the executable if the server is one file.
 */
export function readAsset(path: AssetPath): Buffer {
  return isSea() ? Buffer.from(getRawAsset(path)) : readFileSync(new URL(path, top()))
}

/** Reads the same as text. */
export function readTextAsset(path: AssetPath): string {
  return readAsset(path).toString('utf8')
}

/** Lists the files of a folder that belongs to the code, without its folders. */
export function assetNames(folder: (typeof assetFolders)[number] | InFolders): readonly string[] {
  if (!isSea()) {
    const entries = readdirSync(new URL(folder, top()), { withFileTypes: true })
    return entries.filter((entry) => entry.isFile()).map(({ name }) => name)
  }
  const paths = sea.getAssetKeys().filter((path) => path.startsWith(`${folder}/`))
  return paths.map((path) => path.slice(folder.length + 1)).filter((name) => !name.includes('/'))
}

/** Returns where a folder that belongs to the code is, by default the top of the project; undefined in an executable. */
export function assetFolder(folder: InFolders | '' = ''): string | undefined {
  return isSea() ? undefined : fileURLToPath(new URL(folder, top()))
}

/** Whether there is such a file next to the code; always false in an executable. */
export function hasAsset(path: string): boolean {
  return !isSea() && existsSync(new URL(path, top()))
}
