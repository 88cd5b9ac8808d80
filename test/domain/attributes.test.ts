import t from 'tap'
import {
  type Attribute,
  attributeChange,
  attributeFault,
  attributeNames,
  attributeRoles,
  attributesOf,
  changeAttributes,
  changedAttributes,
  isAttributeName,
} from '../../src/domain/attributes.ts'
import { textClaims } from '../../src/domain/claims.ts'
import type { OAuthError } from '../../src/domain/errors.ts'

const roles = { visible: 'user', editable: 'user' } as const
const text: Attribute = { name: 'desk', type: 'string', ...roles }
const number: Attribute = { name: 'level', type: 'number', ...roles }
const truth: Attribute = { name: 'remote', type: 'boolean', ...roles }
const choice: Attribute = { name: 'site', type: 'choice', values: ['north', 'south'], ...roles }
const declared = [text, number, truth, choice]

t.test('the name of an attribute is that of a claim without a meaning', async (t) => {
  for (const name of ['desk', 'a', 'cost_centre_2', `a${'b'.repeat(49)}`]) t.ok(isAttributeName(name), name)
  for (const name of ['', '2a', 'Desk', 'a-b', '_a', 'a b', ' a', 'a ', `a${'b'.repeat(50)}`])
    t.notOk(isAttributeName(name), name)
  for (const name of ['sub', 'iss', 'email', 'address', 'updated_at', 'groups', 'groups_truncated'])
    t.notOk(isAttributeName(name), name)
  for (const name of ['roles', 'entitlements', ...textClaims]) t.notOk(isAttributeName(name), name)
  t.strictSame(attributeRoles, ['administrator', 'user'])
})

t.test('a value is of the type of its attribute', async (t) => {
  t.equal(attributeFault(text, 'A 12'), undefined)
  for (const value of ['', 5, true, null]) t.equal(attributeFault(text, value), 'text')
  t.equal(attributeFault(text, 'a\u200bb'), 'invisible')
  t.equal(attributeFault(text, 'a'.repeat(5000)), 'tooLong')
  for (const value of [0, -3.5, Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER])
    t.equal(attributeFault(number, value), undefined, `${value}`)
  for (const value of ['5', Number.NaN, Infinity, Number.MAX_SAFE_INTEGER + 1])
    t.equal(attributeFault(number, value), 'number', `${value}`)
  for (const value of [true, false]) t.equal(attributeFault(truth, value), undefined)
  for (const value of ['true', 1, null]) t.equal(attributeFault(truth, value), 'boolean')
  t.equal(attributeFault(choice, 'south'), undefined)
  for (const value of ['west', '', 5]) t.equal(attributeFault(choice, value), 'choice')
  t.equal(attributeFault({ name: 'site', type: 'choice', ...roles }, 'south'), 'choice')
})

t.test('a text of a form becomes a value of its type, or stays a text', async (t) => {
  const assigned = (texts: Readonly<Record<string, string>>) => attributeChange(declared, texts).assigned
  t.strictSame(assigned({ desk: ' A 12 ', level: ' 7 ', remote: 'true', site: 'north' }), {
    desk: 'A 12',
    level: 7,
    remote: true,
    site: 'north',
  })
  t.strictSame(assigned({ remote: 'false', level: '-0.25' }), { remote: false, level: -0.25 })
  t.strictSame(assigned({ desk: '7', site: 'true', other: '8' }), { desk: '7', site: 'true', other: '8' })
  for (const level of ['', '1e3', '0x10', '1.', '.5', '+1', '1 2', 'a1', '1a', '1'.repeat(17)])
    t.strictSame(assigned({ level }), { level })
  for (const remote of ['', 'yes', 'untrue', 'true!', 'falsehood', '1'])
    t.strictSame(assigned({ remote }), { remote })
  t.equal(attributeChange(declared, {}).declared, declared)
})

t.test('what is not declared, or has a value of another type, is not shown', async (t) => {
  const attributes = { desk: 'A 12', level: 'seven', remote: false, former: 'x' }
  t.strictSame(attributesOf(declared, { attributes }), { desk: 'A 12', remote: false })
  t.strictSame(attributesOf(declared, {}), {})
  const inherited = { name: 'constructor', type: 'string', ...roles } as const
  t.strictSame(attributesOf([inherited], { attributes }), {})
})

t.test('a change leaves out what a user left as it was shown', async (t) => {
  const user = { attributes: { desk: 'A 12', level: 'seven', remote: false } }
  const assigned = { desk: 'A 12', level: '', remote: true, site: '' }
  t.strictSame(changedAttributes(user, { declared, assigned }), { declared, assigned: { remote: true } })
  t.strictSame(changedAttributes({}, { declared, assigned: { desk: 'B' } }).assigned, { desk: 'B' })
})

t.test('a change sets, replaces and removes values, and keeps the rest', async (t) => {
  const stored = { desk: 'A 12', level: 'seven', former: 'x' }
  const change = (assigned: Readonly<Record<string, unknown>>) =>
    changeAttributes(stored, { declared, assigned })
  t.strictSame(change({ desk: ' B 1 ', remote: false }), { ...stored, desk: 'B 1', remote: false })
  t.strictSame(change({ desk: '' }), { level: 'seven', former: 'x' })
  t.strictSame(change({ former: '' }), { desk: 'A 12', level: 'seven' })
  t.strictSame(change({ level: 'seven', former: 'x' }), stored, 'what stays is not checked')
  t.strictSame(change({ site: '' }), stored)
  t.strictSame(changeAttributes(undefined, { declared, assigned: { level: 7 } }), { level: 7 })
})

t.test('a change of what is not declared, or to a value of another type, is rejected', async (t) => {
  const rejected = (given: Readonly<Record<string, unknown>>) => {
    try {
      changeAttributes({ former: 'x' }, { declared, assigned: given })
      return undefined
    } catch (error) {
      const { code, message, detail } = error as OAuthError
      return [code, message, detail.rule]
    }
  }
  const undeclared = (name: string) => [
    'invalid_request',
    `attributes: ${name} is not declared in accounts.attributes`,
    'lychgate-attribute-declared',
  ]
  t.strictSame(rejected({ other: 'y' }), undeclared('other'))
  t.strictSame(rejected({ other: '' }), undeclared('other'))
  t.strictSame(rejected({ former: 'y' }), undeclared('former'))
  t.strictSame(rejected({ '<b>': 'y' }), undeclared('a name'))
  const faults = [
    [{ desk: 5 }, 'desk must be text'],
    [{ desk: 'a'.repeat(5000) }, 'desk is too long'],
    [{ desk: 'a\u200bb' }, 'desk contains invisible characters'],
    [{ level: '7' }, 'level must be a number'],
    [{ remote: 'true' }, 'remote must be true or false'],
    [{ site: 'west' }, 'site must be one of the values that accounts.attributes lists for it'],
  ] as const
  for (const [given, fault] of faults)
    t.strictSame(rejected(given), ['invalid_request', `attributes: ${fault}`, 'lychgate-attribute-value'])
})

t.test('the audit log names the changed attributes', async (t) => {
  t.strictSame(attributeNames({ desk: 'A 12', level: 7 }), ['attributes.desk', 'attributes.level'])
})
