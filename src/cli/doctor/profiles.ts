import { type Setup, setting, warning } from '../../doctor/finding.ts'
import type { Finding } from '../../domain/finding.ts'
import type { Client } from '../../domain/model.ts'
import { features } from '../../features.ts'

/** Returns a finding for each requirement of a profile that the settings or these clients miss. */
export function examineProfiles({ config }: Setup, clients: readonly Client[]): readonly Finding[] {
  const profiles = features.flatMap(({ clientProfiles = {} }) => Object.entries(clientProfiles))
  return profiles.flatMap(([name, { shortcomings }]) =>
    shortcomings(config, clients).map(({ said, expected, found, setting: wanted, change = [] }) => {
      const changes = [...(wanted === undefined ? [] : setting(...wanted)), ...change]
      return warning`${`profile ${name}`}: ${said}
        expected  ${expected}
        found  ${found}
        change  ${changes}`
    }),
  )
}
