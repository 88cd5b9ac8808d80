/**
 * Compares the texts of every language with the English ones. `npm run texts -- --help` lists what else it does.
 */

import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Option } from 'commander'
import type { TextEntry } from '../src/config/schema.ts'
import { type Catalogue, readCatalogue, shippedLanguages } from '../src/pages/i18n/i18n.ts'
import { scriptCommand } from './command.ts'
import { outdatedTexts, readTranslated, settle, translations, writeTranslated } from './texts/translated.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

/** What is wrong with the texts of a language, compared with the English ones. */
export function* catalogueFaults(language: string, texts: Catalogue, english: Catalogue): Generator<string> {
  for (const [key, original] of Object.entries(english)) {
    const entry = texts[key]
    if (entry === undefined) yield `${language}: ${key} is missing`
    else yield* entryFaults(`${language}: ${key}`, language, entry, original)
  }
  for (const key of Object.keys(texts)) if (!(key in english)) yield `${language}: ${key} is not in English`
}

/** Keys that are in English and unused, and keys that are used and not in English. */
export function* useFaults(english: Catalogue, sources: readonly string[]): Generator<string> {
  const code = sources.join('\n')
  const written = [...code.matchAll(/['"`]([a-z]\w*\.[\w.-]*)(\$\{)?/g)]
  const whole = new Set(written.flatMap(([, name = '', goesOn]) => (goesOn ? [] : [name])))
  const beginnings = ['area.', ...written.flatMap(([, name = '', goesOn]) => (goesOn ? [name] : []))]
  for (const key of Object.keys(english)) {
    // Some keys are composed: `done.${word}`, 'consent.named' and 'From', 'link.reset' and '.title'.
    const isComposed = beginnings.some((beginning) => key.startsWith(beginning))
    const [stem = ''] = /^.*[a-z](?=[A-Z][a-z]+$)/.exec(key) ?? []
    const parent = key.slice(0, key.lastIndexOf('.'))
    if (!whole.has(key) && !isComposed && !whole.has(stem) && !whole.has(parent))
      yield `${key} is used nowhere`
  }
  for (const [, key = ''] of code.matchAll(/\b(?:says|it\.t|t)\(\s*'([^']+\.[^']+)'/g)) {
    if (!(key in english)) yield `${key} is used, and is no text`
  }
}

/** The sources that use texts. */
export function sourcesWithTexts(): readonly string[] {
  return ['src', 'views'].flatMap((folder) =>
    readdirSync(root + folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(ts|eta)$/.test(name))
      .map((name) => readFileSync(`${root}${folder}/${name}`, 'utf8')),
  )
}

function* entryFaults(
  place: string,
  language: string,
  entry: TextEntry,
  original: TextEntry,
): Generator<string> {
  const wanted = placesOf(typeof original === 'string' ? original : (original.other ?? ''))
  const forms = typeof entry === 'string' ? [['', entry] as const] : Object.entries(entry)
  if (typeof entry !== 'string') yield* formFaults(place, language, Object.keys(entry))
  for (const [form, sentence] of forms) {
    if (typeof sentence !== 'string' || sentence.trim() === '') {
      yield `${place}: is empty`
      continue
    }
    const where = form === '' ? place : `${place} (${form})`
    const found = placesOf(sentence)
    // "One area more" need not contain the number.
    const mayLack = form === '' || form === 'other' ? [] : ['{count}']
    for (const name of wanted) {
      if (!found.includes(name) && !mayLack.includes(name)) yield `${where}: lacks ${name}`
    }
    for (const name of found) if (!wanted.includes(name)) yield `${where}: has ${name}, English has not`
    if (/^\s|\s$/.test(sentence)) yield `${where}: begins or ends with a space`
  }
}

/** A language needs each form that one of its numbers below a thousand takes, and no other. */
function* formFaults(place: string, language: string, forms: readonly string[]): Generator<string> {
  const rules = new Intl.PluralRules(language)
  const needed = new Set(Array.from({ length: 1000 }, (_, number) => rules.select(number)))
  for (const form of needed) if (!forms.includes(form)) yield `${place}: lacks the form ${form}`
  for (const form of forms) {
    if (!rules.resolvedOptions().pluralCategories.some((known) => known === form)) {
      yield `${place}: ${form} is no plural form of this language`
    }
  }
}

/** Placeholders and elements, each once. */
function placesOf(sentence: string): readonly string[] {
  return [...new Set(sentence.match(/\{\w+\}|<\/?\w+>/g))].sort()
}

function printMissing(english: Catalogue): void {
  for (const language of translations) {
    const texts = readCatalogue(language)
    for (const [key, entry] of Object.entries(english)) {
      if (texts[key] === undefined) process.stdout.write(`${language} ${key} = ${JSON.stringify(entry)}\n`)
    }
  }
}

if (import.meta.main) {
  const command = scriptCommand(
    'texts',
    'List what is wrong with the texts, a line each; fails if anything is.',
  )
    .option('--missing', 'list the English texts that a language lacks')
    .option('--settle <key...>', 'record that the translations of these texts say what English says now')
    .addOption(new Option('--languages <language...>', 'with --settle: only these').choices(translations))
    .parse()
  const options = command.opts<{ missing?: true; settle?: string[]; languages?: string[] }>()
  const [english, record] = [readCatalogue('en'), readTranslated()]
  if (options.missing) printMissing(english)
  else if (options.settle !== undefined) {
    const unknown = options.settle.filter((key) => !(key in english) && !(key in record))
    if (unknown.length > 0) command.error(`error: there is no text ${unknown.join(', ')}`)
    writeTranslated(settle(english, record, options.settle, options.languages))
  } else {
    const faults = shippedLanguages.flatMap((language) => [
      ...catalogueFaults(language, readCatalogue(language), english),
    ])
    faults.push(...outdatedTexts(english, record), ...useFaults(english, sourcesWithTexts()))
    for (const fault of faults) process.stderr.write(`${fault}\n`)
    process.exitCode = faults.length === 0 ? 0 : 1
  }
}
