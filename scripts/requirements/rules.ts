import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { Rules } from './judge.ts'

/**
 * The clauses that `src` names: every literal with the form of an id, wherever it is, since a rule may be chosen by a
 * condition or passed on.
 * @param prefixes The beginnings of ids: `rfc6749`, `oidc-core`.
 */
export function readRules(root: string, prefixes: readonly string[]): Rules {
  const form = new RegExp(`'((?:${prefixes.join('|')})-[0-9A-Z][0-9A-Za-z.]*-[a-z0-9-]+)'`, 'g')
  const rule = /\brule: '([^']*)'/g
  return sources(root).flatMap((file) => {
    const text = readFileSync(join(root, file), 'utf8')
    const ids = [...text.matchAll(form), ...text.matchAll(rule)].map(([, id = '']) => id)
    return [...new Set(ids)].filter((id) => !id.startsWith('lychgate-')).map((id) => ({ id, file }))
  })
}

function sources(root: string): readonly string[] {
  return (
    readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
      .map((entry) => relative(root, join(entry.parentPath, entry.name)))
      // Names clauses of other servers; test/prove/ledger.test.ts compares them with the ledger.
      .filter((file) => !file.startsWith('src/prove/'))
      .sort()
  )
}
