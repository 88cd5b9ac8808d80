import { check } from './check.ts'
import { reservedClaims, textClaims, textFault } from './claims.ts'
import type { UserAttributes } from './model.ts'

/** What the values of an attribute can be; `choice`: one of `values`. */
export const attributeTypes = ['string', 'number', 'boolean', 'choice'] as const

/** Who sees or changes an attribute; `user`: the user themself too, and not only administrators. */
export const attributeRoles = ['administrator', 'user'] as const
type Role = (typeof attributeRoles)[number]

/** A custom attribute of users, as `accounts.attributes` declares it. */
export interface Attribute {
  readonly name: string
  readonly type: (typeof attributeTypes)[number]
  readonly values?: readonly string[]
  readonly visible: Role
  readonly editable: Role
}

/** Values by their names. An empty text removes one; a name that is absent stays. */
export interface AttributeChange {
  readonly declared: readonly Attribute[]
  readonly assigned: Readonly<Record<string, unknown>>
}

/** What is wrong with a value. */
export type AttributeFault = 'text' | 'tooLong' | 'invisible' | 'number' | 'boolean' | 'choice'

const demands: Readonly<Record<AttributeFault, string>> = {
  text: 'must be text',
  tooLong: 'is too long',
  invisible: 'contains invisible characters',
  number: 'must be a number',
  boolean: 'must be true or false',
  choice: 'must be one of the values that accounts.attributes lists for it',
}

const nameSyntax = /^[a-z][a-z0-9_]{0,49}$/
/** Claims of users that already have a meaning and are not reserved. */
const knownClaims: readonly string[] = [
  ...textClaims,
  ...['address', 'updated_at', 'groups', 'groups_truncated', 'roles', 'entitlements'],
]

/** Whether an attribute can have this name: it is the name of a claim, too, and no claim that has a meaning. */
export function isAttributeName(name: string): boolean {
  return nameSyntax.test(name) && !reservedClaims.has(name) && !knownClaims.includes(name)
}

/** What is wrong with this value of an attribute. */
export function attributeFault({ type, values = [] }: Attribute, value: unknown): AttributeFault | undefined {
  switch (type) {
    case 'string':
      return typeof value === 'string' && value !== '' ? textFault(value) : 'text'
    case 'number':
      return typeof value === 'number' && Math.abs(value) <= Number.MAX_SAFE_INTEGER ? undefined : 'number'
    case 'boolean':
      return typeof value === 'boolean' ? undefined : 'boolean'
    case 'choice':
      return values.some((one) => one === value) ? undefined : 'choice'
  }
}

/** Returns the change that texts of a form or of a command mean. */
export function attributeChange(
  declared: readonly Attribute[],
  texts: Readonly<Record<string, string>>,
): AttributeChange {
  const values = Object.entries(texts).map(([name, text]) => {
    const type = declared.find((one) => one.name === name)?.type
    return [name, typedValue(type, text.trim())] as const
  })
  return { declared, assigned: Object.fromEntries(values) }
}

/** Text that does not parse as the type is returned unchanged; attributeFault reports it. */
function typedValue(type: Attribute['type'] | undefined, text: string): string | number | boolean {
  if (type === 'number' && /^-?\d{1,16}(?:\.\d{1,16})?$/.test(text)) return Number(text)
  if (type === 'boolean' && /^(?:true|false)$/.test(text)) return text === 'true'
  return text
}

/** Returns the values that the declarations allow. Others are stored and ignored: they were declared otherwise once. */
export function attributesOf(
  declared: readonly Attribute[],
  { attributes = {} }: { readonly attributes?: UserAttributes },
): UserAttributes {
  return Object.fromEntries(
    declared.flatMap((attribute): [string, string | number | boolean][] => {
      const value = Object.hasOwn(attributes, attribute.name) ? attributes[attribute.name] : undefined
      return value === undefined || attributeFault(attribute, value) ? [] : [[attribute.name, value]]
    }),
  )
}

/** Returns a change without what a user who sees the allowed values left as it is. */
export function changedAttributes(
  user: { readonly attributes?: UserAttributes },
  { declared, assigned }: AttributeChange,
): AttributeChange {
  const shown = new Map<string, unknown>(Object.entries(attributesOf(declared, user)))
  const changed = Object.entries(assigned).filter(([name, value]) => value !== (shown.get(name) ?? ''))
  return { declared, assigned: Object.fromEntries(changed) }
}

/**
 * Returns the attributes after a change. What stays the same is not checked, and what is no longer declared can be
 * removed.
 * @throws {OAuthError} `invalid_request` for an attribute that is not declared, or a value that it cannot have.
 */
export function changeAttributes(
  stored: UserAttributes = {},
  { declared, assigned }: AttributeChange,
): UserAttributes {
  const after = new Map(Object.entries(stored))
  for (const [name, one] of Object.entries(assigned)) {
    const value = typeof one === 'string' ? one.trim() : one
    if (after.get(name) === value) continue
    const attribute = declared.find((one) => one.name === name)
    const isRemoval = value === ''
    check(
      attribute !== undefined || (isRemoval && after.has(name)),
      'lychgate-attribute-declared',
      'invalid_request',
      `attributes: ${nameSyntax.test(name) ? name : 'a name'} is not declared in accounts.attributes`,
    )
    if (attribute === undefined || isRemoval) {
      after.delete(name)
      continue
    }
    const fault = attributeFault(attribute, value)
    check(
      fault === undefined,
      'lychgate-attribute-value',
      'invalid_request',
      `attributes: ${name} ${demands[fault ?? 'text']}`,
    )
    // `as`: attributeFault has checked its type.
    after.set(name, value as string | number | boolean)
  }
  return Object.fromEntries(after)
}

/** Returns how the audit log names changed attributes. Their values are not in it. */
export function attributeNames(values: AttributeChange['assigned']): readonly string[] {
  return Object.keys(values).map((name) => `attributes.${name}`)
}
