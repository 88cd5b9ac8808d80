import {
  type Attribute,
  type AttributeChange,
  attributeChange,
  attributeFault,
  attributesOf,
} from '../domain/attributes.ts'
import { localized } from '../domain/localized.ts'
import type { User } from '../domain/model.ts'
import { type Parameters, single } from '../domain/parameters.ts'

/** An attribute of a user on a page. */
export interface AttributeField {
  readonly name: string
  readonly label: string
  /** Absent: it cannot be changed here. */
  readonly type?: Attribute['type']
  readonly values?: readonly string[]
  /** Empty: none. */
  readonly value: string
  readonly fault?: 'tooLong' | 'invisible' | 'number' | 'value'
}

/** What was typed, by the names of attributes. */
export type AttributeTexts = Readonly<Record<string, string>>

/** Reads the attributes that a form may change, and no others. */
export function attributeTexts(form: Parameters, editable: readonly Attribute[]): AttributeTexts {
  return Object.fromEntries(
    editable.map(({ name }) => [name, (single(form, `attribute.${name}`) ?? '').trim()] as const),
  )
}

/** Returns what is wrong with an attribute in a change. */
export function attributeFieldFault(
  attribute: Attribute,
  { assigned: values }: AttributeChange,
): AttributeField['fault'] {
  if (!Object.hasOwn(values, attribute.name) || values[attribute.name] === '') return undefined
  const fault = attributeFault(attribute, values[attribute.name])
  return fault === 'text' || fault === 'boolean' || fault === 'choice' ? 'value' : fault
}

/** Returns a field with what was typed, else with what is stored. */
export function attributeField(
  attribute: Attribute,
  user: User,
  { texts, language, isEditable }: { texts: AttributeTexts; language: string; isEditable: boolean },
): AttributeField {
  const { name, type } = attribute
  const choices = type === 'boolean' ? ['true', 'false'] : (attribute.values ?? [])
  const [stored = ''] = Object.values(attributesOf([attribute], user))
  const label = localized({ ...attribute }, 'label', language) ?? name
  if (!isEditable) return { name, label, values: type === 'boolean' ? choices : [], value: String(stored) }
  const fault = attributeFieldFault(attribute, attributeChange([attribute], texts))
  const value = Object.hasOwn(texts, name) ? (texts[name] ?? '') : String(stored)
  return { name, label, type, values: choices, value, ...(fault && { fault }) }
}
