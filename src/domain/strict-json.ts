/**
 * Parses JSON in which no object has two members of the same name: RFC 7519 §4 and RFC 7515 §4 let a reader reject
 * them, because two readers may choose different ones.
 * @returns undefined if the text is not JSON, or has such members.
 */
export function parseStrictJson(text: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  // A repeated member is in the text each time, and in the value once, however its name is escaped.
  const named = text.replaceAll(/"[^"\\]*(?:\\.[^"\\]*)*"/g, '').split(':').length - 1
  return named === memberCount(value) ? value : undefined
}

/** Counts the members of all objects in parsed JSON. No recursion: the sender would choose the depth of our stack. */
function memberCount(value: unknown): number {
  let count = 0
  const open = [value]
  while (open.length > 0) {
    const next = open.pop()
    if (!isContainer(next)) continue
    const inner: readonly unknown[] = Object.values(next)
    if (!Array.isArray(next)) count += inner.length
    for (const one of inner) open.push(one)
  }
  return count
}

/**
 * Returns whether more than `depth` objects and arrays stand inside each other.
 * @param body Parsed JSON.
 */
export function isDeeperThan(depth: number, body: unknown): boolean {
  // Level by level: with recursion the sender would choose the depth of our stack.
  let level = [body].filter(isContainer)
  for (let outside = 0; outside < depth; outside++)
    level = level.flatMap((container): unknown[] => Object.values(container)).filter(isContainer)
  return level.length > 0
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
