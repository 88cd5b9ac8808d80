import type { Pair } from './request.ts'

/** A form of a page. */
export interface PageForm {
  readonly action: string
  readonly fields: readonly Pair[]
  readonly decisions: readonly string[]
}

/** The first form of a page, as a browser parses it. */
export function formOf(html: string): PageForm | undefined {
  const [, head = '', content = ''] = /<form\b([^>]*)>([\s\S]*?)<\/form>/.exec(html) ?? []
  const action = attribute(head, 'action')
  if (action === undefined) return undefined
  const fields = [...content.matchAll(/<input\b([^>]*)>/g)].flatMap(([, tag = '']): Pair[] => {
    const name = attribute(tag, 'name')
    const isKept = attribute(tag, 'type') === 'hidden' || / checked\b/.test(tag)
    return name !== undefined && isKept ? [[name, attribute(tag, 'value') ?? '']] : []
  })
  const decisions = [...content.matchAll(/<button\b([^>]*)>/g)].flatMap(
    ([, tag = '']) => attribute(tag, 'value') ?? [],
  )
  return { action, fields, decisions }
}

function attribute(tag: string, name: string): string | undefined {
  const value = new RegExp(`\\s${name}="([^"]*)"`).exec(tag)?.[1]
  return value?.replaceAll(/&(amp|lt|gt|quot|#39);/g, (_, entity: string) => entities[entity] ?? '')
}

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }
