import fs, { globSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

/** A control of a form that a browser submits. */
export interface Control {
  readonly name: string
  /** That of an input; `select` and `textarea` for those. */
  readonly type: string
  readonly value: string
  readonly checked: boolean
  /** Of a `select`. */
  readonly options: readonly string[]
  readonly attributes: ReadonlyMap<string, string>
  /** The text of its label. */
  readonly label: string
}

/** A form as it is on a page, with the buttons that submit it. */
export interface PageForm {
  /** The view that opens it, and its number there: `login.eta 2`. */
  readonly mark: string
  readonly action: string
  readonly method: string
  readonly attributes: ReadonlyMap<string, string>
  readonly controls: readonly Control[]
  readonly buttons: readonly { readonly name: string; readonly value: string }[]
}

/** What a user does with a form: texts by name, what is ticked or chosen, and the button. */
export interface Filled {
  readonly texts: Readonly<Record<string, string>>
  readonly ticked?: 'none' | 'one' | 'all'
  readonly chosen?: { readonly name: string; readonly value: string }
  readonly button: { readonly name: string; readonly value: string }
}

/**
 * The marks of the forms on pages that let a client's callback redirect on. A walk of all pages compares it with what is
 * there, and a browser submits each.
 */
export const formsTowardClients = [
  'account-passkeys.eta 2',
  'consent-form.eta 1',
  'denied.eta 1',
  'enrol.eta 1',
  'form-post.eta 1',
  'login.eta 1',
  'login.eta 2',
  'logout.eta 1',
  'passkey-form.eta 1',
  'second-factor.eta 1',
  'select-account.eta 1',
]

/** The forms on the page that leads to an upstream. */
export const formsTowardUpstreams = ['account-upstreams.eta 1', 'account-upstreams.eta 2']

const mark = (name: string) => `data-view="${name}`
const formsOf = (text: string) => text.matchAll(/<form\b/g)

/** The mark of every form of every view. */
export function everyMark(): readonly string[] {
  return globSync('views/**/*.eta').flatMap((file) =>
    [...formsOf(fs.readFileSync(file, 'utf8'))].map((_, at) => `${file.slice('views/'.length)} ${at + 1}`),
  )
}

/** Marks every form and heading with its view when a server reads it: a form has no name by which a test finds it. */
export function markViews(): void {
  const { readFileSync } = fs
  const read = (...args: Parameters<typeof readFileSync>) => {
    const content = readFileSync(...args)
    const [, view] = args[1] === undefined ? (/\/views\/(.+\.eta)$/.exec(String(args[0])) ?? []) : []
    if (view === undefined) return content
    let count = 0
    const marked = content
      .toString()
      .replaceAll(/<form\b/g, () => {
        count += 1
        return `<form ${mark(`${view} ${count}`)}"`
      })
      .replaceAll(/<h1\b/g, `<h1 ${mark(view)}"`)
    return Buffer.from(marked)
  }
  fs.readFileSync = read as typeof readFileSync
  syncBuiltinESMExports()
}

/** The view whose heading a page shows. */
export function viewOf(html: string): string {
  return /<h1 data-view="([^"]*)"/.exec(html)?.[1] ?? ''
}

const control = /<(input|button)\b([^>]*)>|<(textarea|select)\b([^>]*)>([\s\S]*?)<\/\3>/g

/** Reads the forms of a page. */
export function readForms(html: string, url: string): readonly PageForm[] {
  return [...html.matchAll(/<form\b([^>]*)>([\s\S]*?)<\/form>/g)].map(([, head = '', content = '']) => {
    const attributes = attributesOf(head)
    const [controls, buttons]: [Control[], PageForm['buttons'][number][]] = [[], []]
    for (const [, single, ofSingle, whole, ofWhole, inside = ''] of content.matchAll(control)) {
      const own = attributesOf(ofSingle ?? ofWhole ?? '')
      const [name, value] = [own.get('name') ?? '', own.get('value') ?? '']
      const isButton = single === 'button'
      // A button of a dialog sends nothing.
      if (isButton && own.get('type') !== 'button' && !own.has('formmethod')) buttons.push({ name, value })
      if (isButton || name === '' || own.has('disabled')) continue
      const common = { name, attributes: own, label: labelOf(content, own.get('id')) }
      if (whole === 'select') controls.push({ ...common, type: whole, checked: false, ...optionsOf(inside) })
      else if (whole !== undefined)
        controls.push({ ...common, type: whole, value: decode(inside).replace(/^\n/, ''), ...noBox })
      else {
        const type = own.get('type') ?? 'text'
        const isBox = type === 'checkbox' || type === 'radio'
        const sent = isBox && !own.has('value') ? 'on' : value
        controls.push({ ...common, type, value: sent, checked: own.has('checked'), options: [] })
      }
    }
    const action = new URL(attributes.get('action') ?? '', url).href
    const method = (attributes.get('method') ?? 'get').toUpperCase()
    return { mark: attributes.get('data-view') ?? '', action, method, attributes, controls, buttons }
  })
}

const noBox = { checked: false, options: [] } as const

function optionsOf(html: string): Pick<Control, 'value' | 'options'> {
  const all = [...html.matchAll(/<option\b([^>]*)>([^<]*)/g)].map(([, head = '', text = '']) => {
    const attributes = attributesOf(head)
    return { value: attributes.get('value') ?? decode(text).trim(), isSelected: attributes.has('selected') }
  })
  const options = all.map(({ value }) => value)
  return { value: all.find(({ isSelected }) => isSelected)?.value ?? options[0] ?? '', options }
}

function labelOf(content: string, id: string | undefined): string {
  const [, inside = ''] =
    (id && new RegExp(`<label[^>]* for="${id}"[^>]*>([\\s\\S]*?)</label>`).exec(content)) || []
  return inside
}

/** Returns the fields that a browser sends, HTML §4.10.22.4: line breaks as CR LF, and only the pressed button. */
export function fieldsOf({ controls }: PageForm, { texts, ticked, chosen, button }: Filled): URLSearchParams {
  const fields = new URLSearchParams()
  const seen = new Set<string>()
  for (const { name, type, value, checked } of controls) {
    const picked = chosen?.name === name ? chosen.value : undefined
    if (type === 'checkbox') {
      const isFirst = !seen.has(name)
      seen.add(name)
      const isTicked = ticked === undefined ? checked : ticked === 'all' || (ticked === 'one' && isFirst)
      if (isTicked) fields.append(name, value)
    } else if (type === 'radio') {
      if (picked === undefined ? checked : picked === value) fields.append(name, value)
    } else fields.append(name, (picked ?? texts[name] ?? value).replaceAll(/\r?\n/g, '\r\n'))
  }
  if (button.name !== '') fields.append(button.name, button.value)
  return fields
}

function attributesOf(head: string): ReadonlyMap<string, string> {
  return new Map(
    [...head.matchAll(/([^\s"=]+)(?:="([^"]*)")?/g)].map(([, name = '', value = '']) => [
      name,
      decode(value),
    ]),
  )
}

/** Undoes HTML escaping. */
export function decode(text: string): string {
  const named: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }
  return text.replaceAll(/&(amp|lt|gt|quot|#39);/g, (_entity, name: string) => named[name] ?? '')
}
