import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Eta } from 'eta'
import { ConfigError, suggestion } from '../../config/error.ts'
import { assetNames, readAsset } from '../../system/assets.ts'
import { escapeForPage } from '../i18n/html.ts'

const templatesIn = (folder: 'views' | 'views/admin') =>
  assetNames(folder).filter((name) => name.endsWith('.eta'))
/** The views of users, which an operator may replace. */
const ofUsers = templatesIn('views')
const templates = [...ofUsers, ...templatesIn('views/admin').map((name) => `admin/${name}`)]

/** The files of `views/` that an operator may replace. */
const replaceable: readonly string[] = [...ofUsers, 'style.css', 'icon.svg']

/** The views of an installation. */
export interface Views {
  /** Its templates, such as `@login.eta`. They escape every value, RFC 6749 §10.14. */
  readonly eta: Eta
  readonly style: Buffer
  readonly icon: Buffer
}

/**
 * Loads the operator's views, and the shipped ones that the folder does not replace. The operator's are compiled at
 * once, so that an error stops the server and not a user's page; the shipped ones, which tests compile, when they are
 * first shown.
 * @throws {ConfigError} a line for every file that replaces nothing or does not compile.
 */
export function loadViews(folder: string | undefined): Views {
  const own = new Set(folder === undefined ? [] : namesIn(folder))
  const read = (name: string) =>
    folder !== undefined && own.has(name) ? readFileSync(join(folder, name)) : readAsset(`views/${name}`)
  const eta = new Eta({ autoEscape: true, escapeFunction: escapeForPage })
  const faults = [...own].filter((name) => !replaceable.includes(name)).map(strangeName)
  for (const name of ofUsers.filter((name) => own.has(name))) {
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

/** Compiles a shipped template when it is first shown: all together take a twentieth of the time of a start. */
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

/** Lists a folder without hidden files, which desktops and Kubernetes leave everywhere. */
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

/**
 * Returns the line of an error of Eta that matters: the first, or the one after its heading. The compiled function
 * follows.
 */
function reasonOf(error: unknown): string {
  const [first, second] = error instanceof Error ? error.message.split('\n').filter(Boolean) : []
  return (first === 'Bad template syntax' ? second : first)?.replace(/:$/, '') ?? String(error)
}
