/*
 * For `node --import`: resolves what modules of drizzle-orm import from each other. Node parses the `exports` of its
 * package.json, 170 kB, again for each of these hundred modules, which takes half a second of every process.
 */
import * as modules from 'node:module'

const isDrizzle = /\/node_modules\/drizzle-orm\/.*\.js$/

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
