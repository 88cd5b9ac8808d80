/*
 * For `node --import`, in processes of tests and their children: leaves out what no test needs.
 *
 * Loads the packages that `quick-start.ts` bundled: TypeBox, Drizzle and jose are four hundred modules, which take a
 * third of the time of a command.
 *
 * Keeps tap from reading the source maps of packages and from listing each file that a process loads, which takes
 * as long again. Types are stripped in place, so that lines and columns are those of the source anyway.
 */
import { existsSync, readFileSync } from 'node:fs'
import * as modules from 'node:module'

const folder = new URL('../.tap/packages/', import.meta.url)
const index = new URL('index.json', folder)
const bundled = new Map(existsSync(index) ? Object.entries(JSON.parse(readFileSync(index, 'utf8'))) : [])

process.setSourceMapsEnabled(false)
process.setSourceMapsEnabled = () => {}
process.env['_TAPJS_PROCESSINFO_EXCLUDE_'] = '/./'

// An older Node, which one test starts, has no such hooks.
modules.registerHooks?.({
  resolve(specifier, context, next) {
    const file = bundled.get(specifier)
    // Other packages import a version of their own.
    if (file === undefined || context.parentURL?.includes('/node_modules/')) return next(specifier, context)
    return { url: new URL(file, folder).href, format: 'module', shortCircuit: true }
  },
})
