import { Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'

/** So many characters are sent before other requests have their turn. */
const pieceLength = 16_384

/**
 * Streams an object as `JSON.stringify(value, undefined, 2)` and a line break would write it. A member that is an async
 * iterable of parts becomes one array of their elements, and a generator in an element an array: both are read as the
 * receiver takes them. When the receiver leaves, the iterables are closed.
 */
export function jsonStream(value: object): Readable {
  return Readable.from(inPieces(value), { objectMode: false })
}

/** Awaits whole parts and pieces only: a promise for each element would cost more than the element. */
async function* inPieces(value: object): AsyncGenerator<string, void> {
  let piece = ''
  for await (const texts of partsOf(value)) {
    for (const text of texts) {
      piece += text
      if (piece.length < pieceLength) continue
      yield piece
      piece = ''
      await nextTurn()
    }
  }
  yield `${piece}\n`
}

async function* partsOf(value: object): AsyncGenerator<Iterable<string>, void> {
  let start = '{'
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue
    yield [`${start}\n  ${JSON.stringify(name)}: `]
    start = ','
    if (!isList(member, Symbol.asyncIterator)) {
      yield textOf(member, '\n  ')
      continue
    }
    let first = '['
    for await (const part of member as AsyncIterable<readonly unknown[]>) {
      if (part.length === 0) continue
      yield elementsOf(part, '\n  ', first)
      first = ','
    }
    yield [first === '[' ? '[]' : '\n  ]']
  }
  yield ['\n}']
}

/** @param line A line break, and the indentation of what contains the value. */
function* textOf(value: unknown, line: string): Generator<string, void> {
  if (isList(value, Symbol.iterator)) {
    let isEmpty = true
    for (const text of elementsOf(value as Iterable<unknown>, line, '[')) {
      isEmpty = false
      yield text
    }
    yield isEmpty ? '[]' : `${line}]`
    return
  }
  const members = typeof value === 'object' && value !== null ? Object.entries(value) : []
  // Line breaks in strings are escaped.
  if (!members.some(([, member]) => isList(member, Symbol.iterator)))
    return yield JSON.stringify(value, undefined, 2).replaceAll('\n', line)
  let start = '{'
  for (const [name, member] of members) {
    if (member === undefined) continue
    yield `${start}${line}  ${JSON.stringify(name)}: `
    yield* textOf(member, `${line}  `)
    start = ','
  }
  yield `${line}}`
}

/** @param first What stands before the first element. */
function* elementsOf(elements: Iterable<unknown>, line: string, first: string): Generator<string, void> {
  let before = first
  for (const element of elements) {
    yield `${before}${line}  `
    yield* textOf(element, `${line}  `)
    before = ','
  }
}

/** Whether a value is read one element after the other, and is no array. */
function isList(value: unknown, iterator: symbol): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && iterator in value
}
