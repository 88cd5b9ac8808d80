import { isObject } from '../domain/is-object.ts'

/** How to sign in and decide on the pages of a server. A recording has names of fields, and never a password. */
export interface Recording {
  readonly name: string
  /** The page where the user signs in: the form that has this field. */
  readonly signIn: { readonly username: string; readonly password: string; readonly press?: string }
  /** The page where the user approves: the form that has this field, and the buttons of both decisions. */
  readonly consent: {
    readonly has: string
    readonly approve?: Button
    /** The button, or what the link that denies leads to. */
    readonly deny?: Button | { readonly link: string }
  }
  /** A user that such a server has when it is started for a trial. */
  readonly user?: { readonly username: string; readonly password: string }
}

interface Button {
  readonly name: string
  readonly value: string
}

/** Reads a recording that the operator wrote; a text says what is wrong with it. */
export function recordingOf(value: Readonly<Record<string, unknown>>): Recording | string {
  const { name = 'own', signIn, consent } = value
  if (typeof name !== 'string') return 'name is no text'
  if (!isObject(signIn)) return 'signIn is missing'
  const { username, password, press } = signIn
  if (typeof username !== 'string' || typeof password !== 'string')
    return 'signIn.username and signIn.password are the names of two fields'
  if (press !== undefined && typeof press !== 'string') return 'signIn.press is the name of a button'
  if (!isObject(consent) || typeof consent['has'] !== 'string') return 'consent.has is the name of a field'
  const { has, approve, deny } = consent
  if (approve !== undefined && !isButton(approve)) return 'consent.approve has name and value of a button'
  if (deny !== undefined && !isButton(deny) && !isLink(deny))
    return 'consent.deny has name and value of a button, or link, an expression'
  return {
    name,
    signIn: { username, password, ...(press !== undefined && { press }) },
    consent: { has, ...(approve !== undefined && { approve }), ...(deny !== undefined && { deny }) },
  }
}

function isButton(value: unknown): value is Button {
  return isObject(value) && typeof value['name'] === 'string' && typeof value['value'] === 'string'
}

function isLink(value: unknown): value is { readonly link: string } {
  if (!isObject(value) || typeof value['link'] !== 'string') return false
  try {
    return new RegExp(value['link']) instanceof RegExp
  } catch {
    return false
  }
}

/** Recordings of servers that were tried; others are recognised by their password field and the text of their buttons. */
export const presets: readonly Recording[] = [
  {
    name: 'lychgate',
    signIn: { username: 'username', password: 'password' },
    consent: {
      has: 'interaction',
      approve: { name: 'decision', value: 'approve' },
      deny: { name: 'decision', value: 'deny' },
    },
    user: { username: 'alice', password: 'alice-in-dev' },
  },
  {
    name: 'oidc-provider',
    signIn: { username: 'login', password: 'password' },
    consent: { has: 'prompt', deny: { link: '/abort$' } },
    user: { username: 'alice', password: 'any' },
  },
]
