/*
 * For `node --import`, in processes of tests and their children: leaves out what no test needs.
 *
 * Resolves what modules of drizzle-orm import from each other: Node parses the `exports` of its package.json, 170 kB,
 * again for each of these hundred modules, which takes half a second of every process.
 *
 * Keeps tap from reading the source maps of packages and from listing each file that a process loads, which takes
 * as long again. Types are stripped in place, so that lines and columns are those of the source anyway.
 */
import * as modules from 'node:module'

const isDrizzle = /\/node_modules\/drizzle-orm\/.*\.js$/

process.setSourceMapsEnabled(false)
process.setSourceMapsEnabled = () => {}
process.env['_TAPJS_PROCESSINFO_EXCLUDE_'] = '/./'

// An older Node, which one test starts, has no such hooks.
modules.registerHooks?.({
  resolve(specifier, { conditions, parentURL = '' }, next) {
    if (specifier.startsWith('.') && isDrizzle.test(parentURL) && conditions.includes('import')) {
      const { href: url } = new URL(specifier, parentURL)
      if (isDrizzle.test(url)) return { url, format: 'module', shortCircuit: true }
    }
    return next(specifier)
  },
})
