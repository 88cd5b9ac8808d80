import { isNeeded } from '../../domain/interaction.ts'
import type { Scope } from '../../domain/model.ts'
import type { CatalogueScope } from '../../domain/scope-catalogue.ts'

/** A scope as the consent page shows it. */
export interface OfferedScope {
  readonly name: string
  readonly description: string
  readonly checked: boolean
  readonly required: boolean
  /** Whether the page marks it as sensitive. */
  readonly sensitive: boolean
}

/** Areas with read and write side by side, in the order of the catalogue; identity scopes by themselves. */
export interface OfferedScopes {
  readonly identity: readonly OfferedScope[]
  readonly areas: readonly {
    readonly group: string
    readonly read?: OfferedScope
    readonly write?: OfferedScope
  }[]
}

/** How the requested scope is laid out for a user, RFC 6749 §10.2. */
export function layOutScope(
  scope: Scope,
  catalogue: readonly CatalogueScope[],
  isChecked: (entry: CatalogueScope) => boolean,
): OfferedScopes {
  const requested = catalogue.filter(({ name }) => scope.includes(name))
  const offer = (entry: CatalogueScope): OfferedScope => {
    const required = isNeeded(entry.name)
    return {
      name: entry.name,
      description: entry.description,
      checked: required || isChecked(entry),
      required,
      sensitive: entry.sensitive ?? false,
    }
  }
  const groups = Map.groupBy(
    requested.filter(({ access }) => access !== 'identity'),
    ({ group }) => group,
  )
  const areas = [...groups].map(([group, entries]) => {
    const read = entries.find(({ access }) => access === 'read')
    const write = entries.find(({ access }) => access === 'write')
    return { group, ...(read && { read: offer(read) }), ...(write && { write: offer(write) }) }
  })
  return { identity: requested.filter(({ access }) => access === 'identity').map(offer), areas }
}
