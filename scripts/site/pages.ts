/**
 * The pages of the site: those of docs/, and the texts of the repository that they lead to. A link to another file of
 * the repository leads to a copy of it, so that the site is complete wherever it is served.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, posix } from 'node:path'

/** A group of pages in the navigation. */
export interface Group {
  readonly text: string
  readonly items: readonly { readonly text: string; readonly link: string }[]
}

/** What the site is made of. */
export interface Site {
  /** The content of each page by its path, such as `start.md`. */
  readonly pages: ReadonlyMap<string, string>
  /** Paths in the repository whose files are copied to `files/`, with `.txt` behind their names. */
  readonly files: ReadonlySet<string>
  readonly groups: readonly Group[]
}

/** Pages that are not in docs/. */
const others: Readonly<Record<string, string>> = {
  'CONTRIBUTING.md': 'contributing.md',
  'CHANGELOG.md': 'changelog.md',
  'SECURITY.md': 'reporting.md',
}
const index = 'docs/README.md'

/** Returns the id that GitHub gives to a heading, which the links of docs/ expect. */
export function slugify(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-')
}

/** Reads the pages of a checkout, and what they lead to. */
export function siteOf(root: string): Site {
  const tracked = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  }).split('\0')
  const sources = tracked.filter((path) => /^docs\/[^/]+\.md$/.test(path) || path in others)
  const nameOf = (path: string) =>
    path === index ? 'index.md' : (others[path] ?? path.slice('docs/'.length))
  const pages = new Map<string, string>()
  const files = new Set<string>()
  /** The page of a folder lists its files. */
  const folders = new Set<string>()

  const target = (from: string, link: string): string => {
    const [path = '', anchor] = link.split('#')
    if (path === '' || /^[a-z]+:/.test(link)) return link
    const to = posix.join(dirname(from), decodeURI(path)).replace(/\/$/, '')
    const page = sources.includes(to) ? to : undefined
    if (page !== undefined) return `/${nameOf(page)}${anchor === undefined ? '' : `#${anchor}`}`
    if (to.startsWith('docs/images/')) return `/${to.slice('docs/'.length)}`
    if (tracked.includes(to)) {
      files.add(to)
      return `/files/${to}.txt`
    }
    folders.add(to)
    for (const file of tracked) if (file.startsWith(`${to}/`) && isText(file)) files.add(file)
    return `/files/${to}/index.md`
  }

  for (const path of sources)
    pages.set(
      nameOf(path),
      relink(readFileSync(`${root}/${path}`, 'utf8'), (link) => target(path, link)),
    )
  for (const folder of folders) {
    const list = [...files].filter((file) => file.startsWith(`${folder}/`)).sort()
    const lines = list.map((file) => `- [${file.slice(folder.length + 1)}](/files/${file}.txt)`)
    pages.set(`files/${folder}/index.md`, `# ${folder}\n\n${lines.join('\n')}\n`)
  }
  return { pages, files, groups: groupsOf(readFileSync(`${root}/${index}`, 'utf8'), pages) }
}

/** Replaces the targets of links and images outside of code. */
function relink(markdown: string, target: (link: string) => string): string {
  const code = /^```[\s\S]*?^```$|`[^`\n]*`/gm
  const fragments = markdown.match(code) ?? []
  const prose = markdown.split(code).map((text) =>
    text
      .replaceAll(/\]\(([^)\s]+)\)/g, (_, link: string) => `](${target(link)})`)
      .replaceAll(/^(\[[^\]]+\]: )(\S+)$/gm, (_, label: string, link: string) => `${label}${target(link)}`)
      // Vue would read them as an expression.
      .replaceAll('{{', '&#123;&#123;'),
  )
  return prose.map((text, at) => text + (fragments[at] ?? '')).join('')
}

/** The sections of the index that have a table of pages. */
function groupsOf(markdown: string, pages: ReadonlyMap<string, string>): readonly Group[] {
  const sections = markdown.split(/^## /m).slice(1)
  return sections.flatMap((section): Group[] => {
    const text = section.slice(0, section.indexOf('\n'))
    const names = [...section.matchAll(/^\| \[([^\]]+\.md)\]/gm)].map(([, name = '']) => name)
    if (names.length === 0) return []
    return [{ text, items: names.map((name) => ({ text: titleOf(pages, name), link: `/${name}` })) }]
  })
}

function titleOf(pages: ReadonlyMap<string, string>, name: string): string {
  return /^# (.*)$/m.exec(pages.get(name) ?? '')?.[1] ?? name
}

function isText(path: string): boolean {
  return !/\.(?:png|jpe?g|webp|ico|woff2?)$/.test(path)
}
