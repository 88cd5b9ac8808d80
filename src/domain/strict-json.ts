/** JSON that others wrote has at most so many objects and arrays inside each other, where no option limits it. */
const mostDepth = 32

/**
 * Parses JSON of another party.
 * @throws {SyntaxError} if it is no JSON, or is nested too deep for what walks it.
 */
export function parseJson(text: string): unknown {
  if (isNestedDeeper(mostDepth, text)) throw new SyntaxError(`nested deeper than ${mostDepth} levels`)
  return JSON.parse(text)
}

/**
 * Parses JSON in which no object has two members of the same name: RFC 7519 §4 and RFC 7515 §4 let a reader reject
 * them, because two readers may choose different ones.
 * @returns undefined if the text is not JSON, is nested too deep, or has such members.
 */
export function parseStrictJson(text: string): unknown {
  let value: unknown
  try {
    value = parseJson(text)
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

/** Returns whether a text, if it is JSON, has more than `depth` objects and arrays inside each other. */
export function isNestedDeeper(depth: number, text: string): boolean {
  let level = 0
  let isInString = false
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (isInString) {
      if (character === '\\') at++
      else if (character === '"') isInString = false
    } else if (character === '"') isInString = true
    else if (character === '[' || character === '{') level++
    else if (character === ']' || character === '}') level--
    if (level > depth) return true
  }
  return false
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
