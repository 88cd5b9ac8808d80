/** What is wrong with a site: links that lead nowhere, and what a browser would fetch from another host. */
import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'

/** Elements whose URL a browser fetches without being asked. */
const fetched = /<(?:script|img|link|iframe|source|audio|video)\b[^>]*?\s(?:src|href)="([^"]+)"/g
const imported = /(?:@import\s+|url\()["']?((?:https?:)?\/\/[^"')\s]+)/g
const linked = /<a\b[^>]*?\shref="([^"]*)"/g
const named = /\s(?:id|name)="([^"]+)"/g

/** Returns a line for each fault of the pages in a folder that is served below `base`. */
export function faultsOf(folder: string, base: string): readonly string[] {
  const pages = new Map(
    globSync('**/*.html', { cwd: folder }).map((path) => [path, readFileSync(join(folder, path), 'utf8')]),
  )
  const ids = new Map(
    [...pages].map(([path, html]) => [path, new Set(matchesOf(html, named).map(unescaped))]),
  )
  const faults: string[] = []
  for (const [path, html] of pages) {
    const foreign = [...matchesOf(html, fetched), ...matchesOf(html, imported)].filter((url) =>
      /^(?:https?:)?\/\//.test(url),
    )
    faults.push(...foreign.map((url) => `${path}: fetches ${url}`))
    const links = [...matchesOf(html, linked), ...matchesOf(html, fetched)].map(unescaped)
    faults.push(
      ...[...new Set(links)].filter((link) => isBroken(link, path)).map((link) => `${path}: ${link}`),
    )
  }
  for (const path of globSync('**/*.css', { cwd: folder }))
    faults.push(
      ...matchesOf(readFileSync(join(folder, path), 'utf8'), imported).map(
        (url) => `${path}: fetches ${url}`,
      ),
    )
  return faults

  function isBroken(link: string, from: string): boolean {
    if (/^(?:[a-z]+:|\/\/)/.test(link)) return false
    const [path = '', anchor] = link.split('#')
    const to = targetOf(decodeURI(path), from)
    if (to === undefined) return true
    return anchor !== undefined && anchor !== '' && ids.get(to)?.has(decodeURIComponent(anchor)) === false
  }

  /** The file that a web server responds with. */
  function targetOf(path: string, from: string): string | undefined {
    if (path === '') return from
    if (path.startsWith('/') && !path.startsWith(base)) return undefined
    const to = path.startsWith('/') ? path.slice(base.length) : posix.join(dirname(from), path)
    const file = to === '' || to.endsWith('/') ? `${to}index.html` : to
    return existsSync(join(folder, file)) && statSync(join(folder, file)).isFile() ? file : undefined
  }
}

function matchesOf(text: string, pattern: RegExp): readonly string[] {
  return [...text.matchAll(pattern)].map(([, url = '']) => url)
}

function unescaped(text: string): string {
  return text.replaceAll('&amp;', '&').replaceAll('&quot;', '"').replaceAll('&#39;', "'")
}
