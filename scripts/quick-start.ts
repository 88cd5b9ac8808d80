import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** The option of Node that loads the hooks. */
export const quickStartOption = `--import=${pathToFileURL(join(import.meta.dirname, 'quick-start-hooks.js')).href}`

/**
 * Returns environment variables that make Node processes start faster: compiled modules are kept in `folder`, and
 * `quick-start-hooks.js` leaves out what tests do not need.
 */
export function quickStart(folder: string): Readonly<Record<string, string>> {
  const options = [process.env['NODE_OPTIONS'], quickStartOption].filter((option) => option !== undefined)
  return { NODE_COMPILE_CACHE: folder, NODE_OPTIONS: options.join(' ') }
}
