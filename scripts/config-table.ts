import { readFileSync, writeFileSync } from 'node:fs'
import { type ConfigOption, configOptions } from '../src/settings/options.ts'

const page = new URL('../docs/configuration.md', import.meta.url)
const [start, end] = ['<!-- config:start -->', '<!-- config:end -->']

/** The table of every option as Markdown, generated from ConfigSchema. */
export function configTable(): string {
  const rows = configOptions().map(({ path, variable, schema }) => [
    `\`${path}\``,
    variable === undefined ? 'file only' : `\`${variable}\``,
    shownDefault(schema),
    String(schema.description ?? '').replaceAll('|', '\\|'),
  ])
  const lines = [['option', 'variable', 'default', 'meaning'], ['---', '---', '---', '---'], ...rows]
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

/** Replaces what is between the markers with the table. */
export function withConfigTable(text: string): string {
  const [from, to] = [text.indexOf(start), text.indexOf(end)]
  if (from < 0 || to < from) throw new Error(`docs/configuration.md has no ${start} … ${end}`)
  return `${text.slice(0, from + start.length)}\n${configTable()}\n${text.slice(to)}`
}

function shownDefault({ default: value }: ConfigOption['schema']): string {
  if (value === undefined) return ''
  // The shipped scope catalogue is too long for a cell.
  return Array.isArray(value) && value.length > 3 ? `${value.length} entries` : `\`${JSON.stringify(value)}\``
}

if (import.meta.main) {
  const text = readFileSync(page, 'utf8')
  const wanted = withConfigTable(text)
  if (!process.argv.includes('--check')) writeFileSync(page, wanted)
  else if (text !== wanted) {
    process.stderr.write(
      'docs/configuration.md: the table of options is out of date; run npm run generate -- config-table\n',
    )
    process.exitCode = 1
  }
}
