/*
 * A reader for the CBOR of authenticators, RFC 8949 and CTAP 2.1 §8. It runs before any library sees what a browser
 * sent, so it reads definite lengths only, no tags, no key twice, and a bounded depth.
 */

/** A decoded data item. Arrays, floating-point numbers and simple values are skipped: they read as undefined. */
export type CborItem = number | string | undefined | Buffer | ReadonlyMap<number | string, CborItem>

/** A data item, and where the next one starts. */
export interface ReadItem {
  readonly item: CborItem
  readonly end: number
}

/** CTAP 2.1 §8 allows 4 levels in what an authenticator sends; attestation statements are nested once more. */
const mostLevels = 6

/**
 * Reads the data item at `offset`.
 * @throws {RangeError} for anything malformed, indefinite, tagged, repeated or nested too deeply.
 */
export function readItem(bytes: Buffer, offset: number, levels = mostLevels): ReadItem {
  const { major, argument, start } = readHead(bytes, offset)
  switch (major) {
    case 0:
      return { item: argument, end: start }
    case 1:
      return { item: -1 - argument, end: start }
    case 2:
    case 3: {
      const end = start + argument
      if (end > bytes.length) throw new RangeError('CBOR string beyond the end')
      const content = bytes.subarray(start, end)
      return { item: major === 2 ? content : content.toString(), end }
    }
    case 4:
    case 5:
      return readEntries(bytes, start, argument, levels, major === 5)
    case 7:
      return { item: undefined, end: start }
    default:
      throw new RangeError('CBOR tag')
  }
}

function readHead(bytes: Buffer, offset: number) {
  const first = bytes[offset]
  if (first === undefined) throw new RangeError('CBOR beyond the end')
  const short = first & 0x1f
  if (short > 27) throw new RangeError('CBOR of indefinite length')
  const size = short < 24 ? 0 : 1 << (short - 24)
  const start = offset + 1 + size
  if (start > bytes.length) throw new RangeError('CBOR beyond the end')
  const isLong = size === 8
  // 64 bits: exact up to 2^53, and longer than any input above.
  const long = () => bytes.readUInt32BE(offset + 1) * 2 ** 32 + bytes.readUInt32BE(offset + 5)
  const argument = size === 0 ? short : isLong ? long() : bytes.readUIntBE(offset + 1, size)
  return { major: first >> 5, argument, start }
}

/** Reads the entries of a map, or of an array. Each takes a byte or more: a length beyond the input ends at its end. */
function readEntries(bytes: Buffer, start: number, length: number, levels: number, isMap: boolean): ReadItem {
  if (levels === 0) throw new RangeError('CBOR nested too deeply')
  const map = new Map<number | string, CborItem>()
  let end = start
  for (let index = 0; index < length; index += 1) {
    const { item: key, end: valueAt } = isMap ? readItem(bytes, end, levels - 1) : { item: index, end }
    if (typeof key !== 'number' && typeof key !== 'string') throw new RangeError('CBOR key of another type')
    if (map.has(key)) throw new RangeError('CBOR key twice')
    const value = readItem(bytes, valueAt, levels - 1)
    map.set(key, value.item)
    end = value.end
  }
  return { item: isMap ? map : undefined, end }
}
