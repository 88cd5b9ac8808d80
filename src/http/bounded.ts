/** Bytes of one text in a log line or in a record of a rejected request. */
export const longestText = 256
/** Bytes of all items of a list together. */
export const longestList = 512

/**
 * Cuts a text to what may be logged or stored, counted as JSON writes it: a client chooses its characters, and a control
 * character takes six bytes there.
 */
export function boundedText(text: string, most = longestText): string {
  // Most texts need no counting: each of these characters takes one byte.
  if (text.length <= most && /^[ !#-[\]-~]*$/.test(text)) return text
  let [bytes, end] = [0, 0]
  for (const character of text) {
    bytes += jsonBytes(character)
    if (bytes > most) return `${text.slice(0, end)}…`
    end += character.length
  }
  return text
}

/** Cuts a list likewise, each item and the whole; the last item then counts those that are left out. */
export function boundedList(list: readonly string[], read: (item: string) => string): readonly string[] {
  const bounded: string[] = []
  let left = longestList
  for (const item of list) {
    const text = boundedText(read(item))
    // Two quotation marks and a comma.
    left -= jsonBytes(text) + 3
    if (left < 0) return [...bounded, `… and ${list.length - bounded.length} more`]
    bounded.push(text)
  }
  return bounded
}

function jsonBytes(text: string): number {
  return Buffer.byteLength(JSON.stringify(text)) - 2
}
