import { parseStrictJson } from '../domain/strict-json.ts'
import type { DeclaredClientMember } from './core-members.ts'

/** Whether a member is a list of texts: several flags, or the lines of a field. */
export function isTextMember({ schema }: DeclaredClientMember): boolean {
  return schema['type'] === 'array' && schema['items']?.type === 'string'
}

/** Returns the choices of a member as they are typed; undefined: any text may be. */
export function choicesOf(
  { schema, choices }: DeclaredClientMember,
  declared: Readonly<Record<NonNullable<DeclaredClientMember['choices']>, object>>,
): readonly string[] | undefined {
  if (choices !== undefined) return Object.keys(declared[choices])
  return schema['type'] === 'boolean' ? ['true', 'false'] : schema['enum']
}

/**
 * Reads a member that was typed. An empty text is undefined: the member has its default again.
 * @throws {Error} for the content of a file that cannot be read.
 */
export function readTyped({ schema, readFile }: DeclaredClientMember, text: string): unknown {
  if (text === '') return undefined
  if (readFile !== undefined) return readFile(text)
  if (schema['type'] === 'boolean') return text === 'true'
  // Any other text is left to the member, which says what is wrong with it.
  if (schema['type'] === 'array') return parseStrictJson(text) ?? text
  return schema['type'] === 'integer' && /^\d+$/.test(text) ? Number(text) : text
}

/** Writes a member as it is typed. */
export function writeTyped(value: unknown): string {
  if (value === undefined) return ''
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value.join('\n')
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
