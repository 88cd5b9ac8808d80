import { cursorOf, readKeyCursor } from '../../http/cursor.ts'
import type { Call, Page } from './operation.ts'

/** Once a page has looked at this many rows it ends, however few of them it shows. */
const mostLooked = 250

/** A part of the rows along which a page walks. */
export interface Part<T> {
  /** With the cursor after each. */
  readonly rows: readonly { readonly key: string; readonly row: T }[]
  /** Where the next part begins; absent at the end. */
  readonly next?: string | undefined
  /** How much was read for it, if that is more than its rows. */
  readonly looked?: number
}

/**
 * Returns a page of the rows that are described. It costs the same wherever it begins; a page that shows few rows, or
 * none, may still have a next one.
 * @param describe Returns undefined for a row that is not shown.
 */
export async function pageOfWalk<T>(
  { query }: Pick<Call, 'query'>,
  read: (page: Page) => Promise<Part<T>>,
  describe: (row: T) => Promise<object | undefined>,
) {
  const size = Number(query('limit') ?? 50)
  const items: object[] = []
  let after = readKeyCursor(query('after'))
  for (let looked = 0; ; ) {
    const part = await read({ size: size + 1, after })
    const shown = await Promise.all(part.rows.map(({ row }) => describe(row)))
    for (const [index, { key }] of part.rows.entries()) {
      const one = shown[index]
      if (one !== undefined && items.length === size) return { body: { items, next: cursorOf(after ?? '') } }
      if (one !== undefined) items.push(one)
      after = key
    }
    after = part.next
    if (after === undefined) return { body: { items } }
    looked += part.looked ?? part.rows.length
    if (looked >= mostLooked) return { body: { items, next: cursorOf(after) } }
  }
}
