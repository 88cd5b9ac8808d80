/** Writes the page of well-known apps from their recipes; with --check it only compares. */
import { readFileSync, writeFileSync } from 'node:fs'
import { needsUrl, type Recipe, readRecipe, recipeIds, weaknessesOf } from '../src/clients/recipes.ts'
import { apps } from '../test/apps/apps.ts'

const page = new URL('../docs/apps.md', import.meta.url)
const [start, end] = ['<!-- apps:start -->', '<!-- apps:end -->']

/** Replaces what is between the markers by a section for each app. */
export function withApps(text: string): string {
  const [from, to] = [text.indexOf(start), text.indexOf(end)]
  if (from < 0 || to < from) throw new Error(`docs/apps.md has no ${start} … ${end}`)
  const sections = recipeIds().map((id) => sectionOf(id, readRecipe(id)))
  return `${text.slice(0, from + start.length)}\n\n${sections.join('\n\n')}\n\n${text.slice(to)}`
}

function sectionOf(id: string, recipe: Recipe): string {
  const { name, version, tried, client, settings, notes = [], source } = recipe
  const url = needsUrl(recipe) ? ' --url https://app.example.com' : ''
  const weak = weaknessesOf(recipe)
  const isRun = apps.some((app) => app.recipe === id)
  return [
    `## ${name}`,
    tried === undefined
      ? `For version ${version}. **Not tried.**`
      : `For version ${version}. Tried with ${tried.version} on ${tried.on}${isRun ? ', by `npm run test:apps`' : ''}.`,
    ['```ini', `lychgate client add --for ${id}${url}`, '```'].join('\n'),
    `Redirect URIs: ${client.redirect_uris.map((uri) => `\`${uri}\``).join(', ')}.`,
    ...(weak.length > 0 ? [`The recipe asks before it adds this: ${weak.join('; ')}.`] : []),
    `In the app (${settings.where}):`,
    ['```ini', ...settings.lines, '```'].join('\n'),
    ...notes,
    `From ${source.map((link) => `<${link}>`).join(', ')}.`,
  ].join('\n\n')
}

if (import.meta.main) {
  const text = readFileSync(page, 'utf8')
  const wanted = withApps(text)
  if (!process.argv.includes('--check')) writeFileSync(page, wanted)
  else if (text !== wanted) {
    process.stderr.write('docs/apps.md: out of date; run npm run generate -- apps-page\n')
    process.exitCode = 1
  }
}
