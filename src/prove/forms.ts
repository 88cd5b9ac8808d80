/** Reads the forms of a page, as a browser without scripts would send them. */

/** A control of a form. */
export interface Control {
  readonly tag: 'input' | 'button' | 'select' | 'textarea'
  readonly type: string
  readonly name: string
  readonly value: string
  readonly isChecked: boolean
  /** The id of its form, if it names one. */
  readonly form?: string | undefined
  /** The text of a button. */
  readonly text: string
}

/** A form of a page. */
export interface PageForm {
  readonly method: 'GET' | 'POST'
  /** Resolved against the URL of the page. */
  readonly action: string
  readonly controls: readonly Control[]
}

/** The tags of forms; a quoted value may contain what ends a tag elsewhere. */
const tag = /<(?:form|input|button|select|textarea|option)\b(?:[^>"']|"[^"]*"|'[^']*')*>/gi

/** Returns the forms of a page in their order. */
export function formsOf(html: string, pageUrl: string): readonly PageForm[] {
  const page = html
    .replaceAll(/<!--[\s\S]*?-->|<script\b[\s\S]*?<\/script>|<template\b[\s\S]*?<\/template>/gi, '')
    .replaceAll(tag, (text) => `${text.slice(0, -1).replaceAll('>', '&gt;')}>`)
  return [...page.matchAll(/<form\b([^>]*)>([\s\S]*?)<\/form>/gi)].map(([, head = '', content = '']) => {
    const attributes = attributesOf(head)
    const { id } = attributes
    // A control outside names its form.
    const others =
      id === undefined ? [] : controlsOf(page.replace(content, '')).filter(({ form }) => form === id)
    return {
      method: attributes['method']?.toLowerCase() === 'post' ? 'POST' : 'GET',
      action: URL.parse(attributes['action'] || pageUrl, pageUrl)?.href ?? pageUrl,
      controls: [...controlsOf(content), ...others],
    }
  })
}

function controlsOf(content: string): readonly Control[] {
  const controls = /<(input|button|select|textarea)\b([^>]*)>(?:([\s\S]*?)<\/(?:button|select|textarea)>)?/gi
  const inputs = /<input\b([^>]*)>/gi
  const successful: Control[] = []
  // An input has no end tag: the text up to that of a button is not its content.
  for (const [, head = ''] of content.matchAll(inputs)) successful.push(controlOf('input', head, ''))
  const others = content.replaceAll(inputs, '')
  for (const [, tag = '', head = '', inner = ''] of others.matchAll(controls))
    successful.push(controlOf(tag.toLowerCase() as Control['tag'], head, inner)) // as the expression matches
  return successful
}

function controlOf(tag: Control['tag'], head: string, inner: string): Control {
  const attributes = attributesOf(head)
  const selected = /<option\b([^>]*\bselected\b[^>]*)>/i.exec(inner) ?? /<option\b([^>]*)>/i.exec(inner)
  const value = tag === 'select' ? attributesOf(selected?.[1] ?? '')['value'] : attributes['value']
  return {
    tag,
    type: attributes['type']?.toLowerCase() ?? (tag === 'button' ? 'submit' : 'text'),
    name: attributes['name'] ?? '',
    value: value ?? (attributes['type'] === 'checkbox' ? 'on' : ''),
    isChecked: 'checked' in attributes,
    form: attributes['form'],
    text: decoded(inner.replaceAll(/<[^>]*>/g, ' ')).trim(),
  }
}

/** Returns what a browser sends: no buttons except the pressed one, and only what is checked. */
export function fieldsOf(
  form: PageForm,
  filled: Readonly<Record<string, string>>,
  pressed?: Pick<Control, 'name' | 'value'>,
): URLSearchParams {
  const fields = new URLSearchParams()
  for (const { tag, type, name, value, isChecked } of form.controls) {
    const isButton = tag === 'button' || /^(submit|button|image|reset)$/.test(type)
    if (name === '' || isButton || (/^(checkbox|radio)$/.test(type) && !isChecked)) continue
    fields.append(name, filled[name] ?? value)
  }
  if (pressed !== undefined && pressed.name !== '') fields.append(pressed.name, pressed.value)
  return fields
}

/** Returns where a link with such a text or address leads. */
export function linkOf(html: string, pageUrl: string, pattern: RegExp): string | undefined {
  for (const [, head = '', inner = ''] of html.matchAll(/<a\b([^>]*)>([\s\S]*?)<\/a>/gi)) {
    const { href } = attributesOf(head)
    if (href !== undefined && (pattern.test(href) || pattern.test(decoded(inner))))
      return URL.parse(href, pageUrl)?.href
  }
  return undefined
}

function attributesOf(head: string): Readonly<Record<string, string>> {
  const attributes = /([^\s"'<>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?/g
  return Object.fromEntries(
    [...head.matchAll(attributes)].map(([, name = '', double, single, bare]) => [
      name.toLowerCase(),
      decoded(double ?? single ?? bare ?? ''),
    ]),
  )
}

const entities: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
}

function decoded(text: string): string {
  return text.replaceAll(/&(#x[\da-f]+|#\d+|\w+);/gi, (whole, name: string) => {
    if (name.startsWith('#x') || name.startsWith('#X'))
      return String.fromCodePoint(Number.parseInt(name.slice(2), 16))
    if (name.startsWith('#')) return String.fromCodePoint(Number(name.slice(1)))
    return entities[name] ?? whole
  })
}
