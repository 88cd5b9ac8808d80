import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

/**
 * Returns environment variables that make Node processes start faster: compiled modules are kept in `folder`, and
 * packages are resolved by `quick-resolve.js`.
 */
export function quickStart(folder: string): Readonly<Record<string, string>> {
  const hooks = pathToFileURL(join(import.meta.dirname, 'quick-resolve.js')).href
  const options = [process.env['NODE_OPTIONS'], `--import=${hooks}`].filter((option) => option !== undefined)
  return { NODE_COMPILE_CACHE: folder, NODE_OPTIONS: options.join(' ') }
}
