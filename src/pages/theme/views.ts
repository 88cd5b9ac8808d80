import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Eta } from 'eta'
import { readAsset } from '../../assets.ts'
import { ConfigError, suggestion } from '../../config/error.ts'
import { escapeForPage } from '../i18n/html.ts'
import type { Pages } from '../page-models.ts'

const partials = [
  'layout',
  'hidden',
  'account',
  'account-frame',
  'account-grant',
  'passkey-form',
  'scopes',
] as const
const pageNames: Readonly<Record<keyof Pages, true>> = {
  login: true,
  'select-account': true,
  'second-factor': true,
  consent: true,
  logout: true,
  'signed-out': true,
  'account-overview': true,
  'account-apps': true,
  'account-sessions': true,
  'account-security': true,
  'account-password': true,
  'account-passkeys': true,
  'account-one-time-codes': true,
  'account-profile': true,
  'account-email': true,
  'account-activity': true,
  'account-privacy': true,
  'account-delete': true,
  'account-deleted': true,
  'link-password': true,
  'link-email': true,
  'link-done': true,
  'forgot-password': true,
  'email-on-its-way': true,
  'form-post': true,
  error: true,
  home: true,
}
const templates = [...partials, ...Object.keys(pageNames)].map((name) => `${name}.eta`)

/** Every file of `views/` that an operator may put another in the place of. */
const replaceable: readonly string[] = [...templates, 'style.css', 'icon.svg']

/** The views as this installation shows them. */
export interface Views {
  /** Its templates: `@login.eta`. Everything they show is escaped, RFC 6749 §10.14. */
  readonly eta: Eta
  readonly style: Buffer
  readonly icon: Buffer
}

/**
 * The views of this folder, compiled at once, so that one that cannot be stops the server instead of a user; and the
 * shipped ones where it has none, which tests compile, each when it is first shown.
 * @throws {ConfigError} a line for every file that has no place or does not compile.
 */
export function loadViews(folder: string | undefined): Views {
  const own = new Set(folder === undefined ? [] : namesIn(folder))
  const read = (name: string) =>
    folder !== undefined && own.has(name) ? readFileSync(join(folder, name)) : readAsset(`views/${name}`)
  const eta = new Eta({ autoEscape: true, escapeFunction: escapeForPage })
  const faults = [...own].filter((name) => !replaceable.includes(name)).map(strangeName)
  for (const name of templates.filter((name) => own.has(name))) {
    try {
      eta.loadTemplate(`@${name}`, read(name).toString('utf8'))
    } catch (error) {
      faults.push(`views: ${name} does not compile: ${reasonOf(error)}`)
    }
  }
  compileOnDemand(eta, (name) => (templates.includes(name) ? read(name).toString('utf8') : undefined))
  if (faults.length > 0) throw new ConfigError(faults)
  return { eta, style: read('style.css'), icon: read('icon.svg') }
}

/** Compiles what is shipped when it is first shown: all of them together are a twentieth of a start. */
function compileOnDemand(eta: Eta, textOf: (name: string) => string | undefined): void {
  const compiled = eta.templatesSync
  const get = compiled.get.bind(compiled)
  compiled.get = (key) => {
    const found = get(key)
    const text = found === undefined && key.startsWith('@') ? textOf(key.slice(1)) : undefined
    if (text === undefined) return found
    eta.loadTemplate(key, text)
    return get(key)
  }
}

/** Hidden files are none of ours: desktops and Kubernetes leave theirs everywhere. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => !name.startsWith('.'))
  } catch (cause) {
    const reason = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unreadable'
    throw new ConfigError(`views: cannot read the folder ${folder} (${reason})`, { cause })
  }
}

function strangeName(name: string): string {
  return `views: there is no view ${name} to replace${suggestion(name, replaceable)}`
}

/** Eta adds the compiled function to what it says; the line that matters is the first, or the one after its heading. */
function reasonOf(error: unknown): string {
  const [first, second] = error instanceof Error ? error.message.split('\n').filter(Boolean) : []
  return (first === 'Bad template syntax' ? second : first)?.replace(/:$/, '') ?? String(error)
}
