import { isNeeded } from '../domain/interaction.ts'
import { localized } from '../domain/localized.ts'
import type { Scope } from '../domain/model.ts'
import {
  type AddedScopes,
  type CatalogueScope,
  completeCatalogue,
  defaultScopeCatalogue,
} from '../domain/scope-catalogue.ts'
import type { Service } from '../feature/service.ts'
import { memoize } from './i18n/html.ts'
import type { I18n } from './i18n/i18n.ts'

/** A scope as pages show it. */
export interface OfferedScope {
  /** The value of its checkbox `scope`. */
  readonly name: string
  readonly description: string
  readonly checked: boolean
  /** Whether it cannot be cleared, such as `openid`. */
  readonly required: boolean
  /** Whether the page marks it as sensitive. */
  readonly sensitive: boolean
}

/** Scopes for read and write access side by side. */
export interface ScopeArea {
  readonly group: string
  readonly read?: OfferedScope
  readonly write?: OfferedScope
}

/** Areas in the order of the catalogue; scopes about the user, such as `profile`, by themselves. */
export interface OfferedScopes {
  readonly identity: readonly OfferedScope[]
  readonly areas: readonly ScopeArea[]
}

/** Lays out a scope for a user, RFC 6749 §10.2. */
export function layOutScope(
  scope: Scope,
  catalogue: readonly CatalogueScope[],
  isChecked: (entry: CatalogueScope) => boolean,
): OfferedScopes {
  const requested = catalogue.filter(({ name }) => scope.includes(name))
  const offer = (entry: CatalogueScope): OfferedScope => {
    const { name, description, sensitive = false } = entry
    const required = isNeeded(name)
    return { name, description, checked: required || isChecked(entry), required, sensitive }
  }
  const inAreas = requested.filter(({ access }) => access !== 'identity')
  const areas = [...Map.groupBy(inAreas, ({ group }) => group)].map(([group, entries]) => {
    const read = entries.find(({ access }) => access === 'read')
    const write = entries.find(({ access }) => access === 'write')
    return { group, ...(read && { read: offer(read) }), ...(write && { write: offer(write) }) }
  })
  return { identity: requested.filter(({ access }) => access === 'identity').map(offer), areas }
}

/**
 * Returns the scope catalogue in a language: the operator's words for it (`description#de`), else the shipped
 * translation of a shipped text, else the text of the catalogue.
 * @param added The scopes of features, whose texts are shipped, too.
 */
export function scopesFor(
  service: Pick<Service, 'catalogue'>,
  texts: I18n,
  added: AddedScopes = {},
): (language: string) => readonly CatalogueScope[] {
  const shipped = new Map(completeCatalogue(defaultScopeCatalogue, added).map((scope) => [scope.name, scope]))
  const translate = (scope: CatalogueScope, language: string): CatalogueScope => {
    const inLanguage = (member: 'group' | 'description') => {
      const own = localized({ ...scope }, member, language) ?? scope[member]
      const isShipped = own === scope[member] && own === shipped.get(scope.name)?.[member]
      if (!isShipped) return own
      const area = `area.${scope.name.replace(/:\w+$/, '').replaceAll(':', '.')}`
      return texts.in(language).t({ key: member === 'group' ? area : `${area}.about` }).text
    }
    return { ...scope, group: inLanguage('group'), description: inLanguage('description') }
  }
  const translated = (catalogue: Service['catalogue']) => ({
    catalogue,
    in: memoize((language) => catalogue.map((scope) => translate(scope, language))),
  })
  let current = translated(service.catalogue)
  return (language) => {
    if (current.catalogue !== service.catalogue) current = translated(service.catalogue)
    return current.in(language)
  }
}
