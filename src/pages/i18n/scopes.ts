import { localized } from '../../domain/localized.ts'
import {
  type CatalogueScope,
  defaultScopeCatalogue,
  withOfflineAccess,
} from '../../domain/scope-catalogue.ts'
import type { I18n } from './i18n.ts'

const shipped = new Map(withOfflineAccess(defaultScopeCatalogue).map((scope) => [scope.name, scope]))

/**
 * The scope catalogue as users read it in their language: in an operator's own words for it, `description#de`, else in
 * ours where the operator kept ours, else as it is.
 */
export function scopesFor(
  catalogue: readonly CatalogueScope[],
  texts: I18n,
): (language: string) => readonly CatalogueScope[] {
  const known = new Map<string, readonly CatalogueScope[]>()
  const translate = (scope: CatalogueScope, language: string): CatalogueScope => {
    const say = (member: 'group' | 'description') => {
      const own = localized({ ...scope }, member, language) ?? scope[member]
      const isOurs = own === scope[member] && own === shipped.get(scope.name)?.[member]
      if (!isOurs) return own
      const area = `area.${scope.name.split(':')[0]}`
      return texts.in(language).t({ key: member === 'group' ? area : `${area}.about` }).text
    }
    return { ...scope, group: say('group'), description: say('description') }
  }
  return (language) => {
    const scopes = known.get(language) ?? catalogue.map((scope) => translate(scope, language))
    known.set(language, scopes)
    return scopes
  }
}
