import { textFaults } from '../pages/i18n/faults.ts'
import { languagesOf } from '../pages/i18n/i18n.ts'
import { accentFault } from '../pages/theme/accent.ts'
import type { Config } from './schema.ts'

/** What is wrong with the settings of the pages: colour, links, language and texts. */
export function* pageFaults({ service, texts }: Config): Generator<string> {
  const fault = service.accent === undefined ? undefined : accentFault(service.accent)
  if (fault !== undefined) yield `service.accent: ${fault}`
  for (const name of ['help', 'documentation', 'policy', 'terms'] as const) {
    const link = service[name]
    if (link !== undefined && !/^https?:$/.test(URL.parse(link)?.protocol ?? '')) {
      yield `service.${name}: must be an absolute http or https URL`
    }
  }
  const languages = languagesOf(texts)
  if (!languages.includes(service.language)) {
    yield `service.language: must be one of ${languages.join(', ')}`
  }
  yield* textFaults(texts)
}
