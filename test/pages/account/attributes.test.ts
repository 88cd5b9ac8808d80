/** Custom attributes on the account page: who sees and changes them. */
import t from 'tap'
import { accept, update } from '../../../src/domain/decision.ts'
import type { User, UserAttributes } from '../../../src/domain/model.ts'
import { pageOf } from '../../helpers/authorization.ts'
import { startServer } from '../../helpers/server.ts'
import { type Page, UserAgent } from '../../helpers/user-agent.ts'
import { doneOf, enter, textOf } from './sections.ts'

const byUser = { visible: 'user', editable: 'user' } as const
const server = await startServer(t, {
  accounts: {
    attributes: [
      { name: 'room', label: '<b>Room</b>', ...{ 'label#de': 'Zimmer' }, type: 'string', ...byUser },
      { name: 'shirt', type: 'choice', values: ['S', 'M'], ...byUser },
      { name: 'shoes', type: 'number', ...byUser },
      { name: 'vegan', type: 'boolean', ...byUser },
      { name: 'department', label: 'Department', type: 'string', visible: 'user', editable: 'administrator' },
      { name: 'secret_note', type: 'string', visible: 'administrator', editable: 'administrator' },
      { name: 'constructor', type: 'string', ...byUser },
    ],
  },
})
const { store } = server.deps
const agent = new UserAgent(server.issuer)
const stored = async () => (await store.find('userByLogin', 'alice'))?.attributes
const set = async (attributes: UserAttributes) => {
  const { id = '' } = (await store.find('userByLogin', 'alice')) ?? {}
  await store.transact('user', id, (user) =>
    accept(undefined, update('user', { ...(user as User), attributes })),
  )
}
const formOf = ({ forms }: Page) => forms.find(({ fields }) => fields.some(({ name }) => name === 'name'))
const fill = async (page: Page, fields: Record<string, string>) =>
  pageOf(await agent.submit(page, fields, formOf(page)))
const kept = { department: 'physics', secret_note: 'hidden-note' }

t.test('a user sees the visible attributes, and changes the editable ones', async (t) => {
  await set({ ...kept, room: '<script>alert(1)</script>', gone: 'gone-value' })
  const page = await enter(server, agent, '/profile')
  const names = formOf(page)
    ?.fields.map(({ name }) => name)
    .filter((name) => name.startsWith('attribute.'))
  t.strictSame(
    names,
    ['room', 'shoes', 'constructor'].map((name) => `attribute.${name}`),
  )
  t.match(textOf(page), /Department physics/)
  t.notMatch(page.html, /hidden-note|secret_note|gone-value|<script>alert|<b>Room/)
  t.match(page.html, 'value="&lt;script&gt;alert(1)&lt;/script&gt;"')
  const after = await fill(page, {
    'attribute.room': ' B 12 ',
    'attribute.shirt': 'M',
    'attribute.shoes': '41.5',
    'attribute.vegan': 'false',
    'attribute.department': 'magic',
    'attribute.secret_note': 'magic',
    'attribute.gone': 'magic',
    'attribute.__proto__': 'magic',
  })
  t.equal(doneOf(after), 'Saved.')
  t.strictSame(await stored(), {
    ...kept,
    gone: 'gone-value',
    room: 'B 12',
    shirt: 'M',
    shoes: 41.5,
    vegan: false,
  })
  const [event] = await store.audit({ since: 0, name: 'user-changed', limit: 1 })
  const changed = 'attributes.room attributes.shirt attributes.shoes attributes.vegan'
  t.strictSame(event?.facts, { changed }, 'names, and no values')
  t.match(after.html, /<select[^>]* name="attribute.shirt">.*<option value="M" selected>/)
  await fill(after, { 'attribute.room': '', 'attribute.shirt': 'M', 'attribute.vegan': '' })
  t.strictSame(await stored(), { ...kept, gone: 'gone-value', shirt: 'M', shoes: 41.5 })
})

t.test('a value that does not fit is rejected next to its field, and nothing changes', async (t) => {
  const page = await enter(server, agent, '/profile')
  const before = await stored()
  const cases: readonly (readonly [string, string, RegExp])[] = [
    ['room', 'x'.repeat(201), /^That is too long/],
    ['room', 'a\u202eb', /^It contains invisible characters/],
    ['shoes', 'big', /^Enter a number/],
    ['shirt', 'XXL', /^That value is not possible/],
    ['vegan', 'yes', /^That value is not possible/],
  ]
  for (const [name, value, fault] of cases) {
    const after = await fill(page, { [`attribute.${name}`]: value, name: 'Somebody Else' })
    t.equal(after.status, 400, name)
    t.match(/class="fault"[^>]*>([^<]*)</.exec(after.html)?.[1], fault)
  }
  t.strictSame(await stored(), before)
})

t.test('a stored value that the declaration does not allow survives a form', async (t) => {
  await set({ ...kept, shirt: 'huge', shoes: 'big' })
  const page = await enter(server, agent, '/profile')
  t.notMatch(page.html, /huge|value="big"/)
  await fill(page, { 'attribute.room': 'C' })
  t.strictSame(await stored(), { ...kept, shirt: 'huge', shoes: 'big', room: 'C' })
})

t.test('the copy of their data has what the user sees', async (t) => {
  const page = await enter(server, agent, '/privacy')
  const body = new URLSearchParams({ csrf: page.forms[0]?.fields[0]?.value ?? '' })
  const copy = JSON.parse(await (await agent.send(page.url, { method: 'POST', body })).text())
  t.strictSame(copy.account.attributes, { room: 'C', department: 'physics' })
  t.notMatch(JSON.stringify(copy), /hidden-note|secret_note|huge/)
})
