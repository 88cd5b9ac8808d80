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
  return hasRepeatedMember(text) ? undefined : value
}

/** @param text Valid JSON. */
function hasRepeatedMember(text: string): boolean {
  const open: (Set<string> | undefined)[] = []
  for (const [token, name] of text.matchAll(/("(?:[^"\\]|\\.)*")\s*:|"(?:[^"\\]|\\.)*"|[{}[\]]/g)) {
    if (token === '{') open.push(new Set())
    else if (token === '[') open.push(undefined)
    else if (token === '}' || token === ']') open.pop()
    else if (name !== undefined) {
      // The same name can be written with different escapes.
      const member: string = JSON.parse(name)
      const members = open.at(-1)
      if (members?.has(member)) return true
      members?.add(member)
    }
  }
  return false
}

/**
 * Returns whether more than `depth` objects and arrays stand inside each other.
 * @param body Parsed JSON.
 */
export function isDeeperThan(depth: number, body: unknown): boolean {
  // Level by level: with recursion the sender would choose the depth of our stack.
  let level = [body]
  for (let depthLeft = depth; level.length > 0; depthLeft--) {
    const containers = level.filter((value) => typeof value === 'object' && value !== null)
    if (depthLeft === 0) return containers.length > 0
    level = containers.flatMap((container): unknown[] => Object.values(container))
  }
  return false
}
