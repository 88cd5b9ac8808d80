import t from 'tap'
import { completeCatalogue, defaultScopeCatalogue } from '../../../src/domain/scope-catalogue.ts'
import { declared } from '../../../src/features.ts'
import { createI18n, shippedLanguages } from '../../../src/pages/i18n/i18n.ts'
import { scopesFor } from '../../../src/pages/scopes.ts'

const texts = createI18n({ service: 'S' })

t.test('the English texts of the shipped scopes match the catalogue', async (t) => {
  t.strictSame(scopesFor({ catalogue: defaultScopeCatalogue }, texts)('en'), defaultScopeCatalogue)
})

t.test('every shipped scope is translated into every language, in the same group as before', async (t) => {
  for (const language of shippedLanguages.filter((shipped) => shipped !== 'en')) {
    const scopes = scopesFor({ catalogue: defaultScopeCatalogue }, texts)(language)
    for (const [index, scope] of scopes.entries()) {
      const original = defaultScopeCatalogue[index]
      t.not(scope.description, original?.description, `${language} ${scope.name}`)
      t.strictSame({ ...scope, group: '', description: '' }, { ...original, group: '', description: '' })
    }
    const groups = (entries: typeof scopes) => new Set(entries.map(({ group }) => group)).size
    t.equal(groups(scopes), groups(defaultScopeCatalogue), language)
  }
})

t.test(
  'the scopes of features have texts in every language, in English those of the catalogue',
  async (t) => {
    const catalogue = completeCatalogue(defaultScopeCatalogue, declared.scopes)
    for (const language of shippedLanguages) {
      const scopes = scopesFor({ catalogue }, texts, declared.scopes)(language)
      t.equal(scopes.length, catalogue.length, language)
      if (language === 'en') t.strictSame(scopes, catalogue)
    }
  },
)

t.test("an operator's text of a scope wins, in the languages it is written in", async (t) => {
  const own = [
    { name: 'courses:read', group: 'Courses', access: 'read' as const, description: 'Our courses' },
    {
      name: 'courses:write',
      group: 'Courses',
      access: 'write' as const,
      description: 'Titles, lessons and schedules',
      'description#de': 'Unsere Kurse',
      'description#fr-CA': 'Nos cours',
      'group#de': 'Unterricht',
    },
  ]
  const say = (language: string) =>
    scopesFor({ catalogue: own }, texts)(language).map(({ group, description }) => [group, description])
  t.strictSame(say('de'), [
    ['Kurse', 'Our courses'],
    ['Unterricht', 'Unsere Kurse'],
  ])
  t.strictSame(say('fr'), [
    ['Cours', 'Our courses'],
    ['Cours', 'Nos cours'],
  ])
  t.equal(say('es')[1]?.[1], 'Títulos, lecciones y horarios')
})
