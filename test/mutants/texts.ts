import type { Fault } from './fault.ts'

const words = 'src/pages/i18n/html.ts'
const renderer = ['test/pages/i18n/html.test.ts'] as const
const pages = ['test/pages/languages.test.ts'] as const

/** Faults of translations and of the values in them. */
export const textFaults = [
  {
    id: 'name-in-a-sentence-not-escaped',
    file: words,
    find: '</bdi>`, turns',
    replace: '</bdi>${text}`, turns',
    tests: renderer,
  },
  {
    id: 'name-in-a-sentence-not-isolated',
    file: words,
    find: '<bdi${attributes}>${escapeMarkup(text)}</bdi>',
    replace: '${escapeMarkup(text)}',
    tests: renderer,
  },
  {
    id: 'link-to-a-script',
    file: words,
    find: '/^(?:https?:\\/\\/|\\/(?!\\/))/i.test(value.link)',
    replace: 'value.link',
    tests: renderer,
  },
  {
    id: 'language-forgotten-on-the-way',
    file: 'src/pages/sign-in/pending.ts',
    find: 'request.uiLocales = pendingRequest.uiLocales',
    replace: 'void pendingRequest.uiLocales',
    tests: pages,
  },
  {
    id: 'language-of-the-browser-first',
    file: 'src/domain/language.ts',
    find: '  if (asked !== undefined) return asked\n',
    replace: '  if (asked !== undefined && acceptLanguage === undefined) return asked\n',
    tests: pages,
  },
  {
    id: 'page-in-a-language-cached-for-all',
    file: 'src/pages/pages.ts',
    find: ".header('vary', 'Accept-Language')",
    replace: '',
    tests: pages,
  },
] as const satisfies readonly Fault[]
