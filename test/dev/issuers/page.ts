import { profiles } from '../../../src/dev/issuers/catalogue.ts'
import type { Result } from './results.ts'

/** Replaces what is between the markers of this name. */
export function withSection(text: string, name: string, content: string): string {
  const [start, end] = [`<!-- ${name}:start -->`, `<!-- ${name}:end -->`]
  const [from, to] = [text.indexOf(start), text.indexOf(end)]
  if (from < 0 || to < from) throw new Error(`the page has no ${start} … ${end}`)
  return `${text.slice(0, from + start.length)}\n${content}\n${text.slice(to)}`
}

/** Every profile: what it breaks, what a correct client does, and when a client counts as deceived. */
export function catalogueTable(): string {
  const rows = profiles.map(({ id, title, clause, ledger, sound, fooledWhen }) => [
    `\`${id}\``,
    title,
    ledger === undefined ? clause : `${clause}<br>\`${ledger}\``,
    sound,
    fooledWhen.text,
  ])
  return table(['profile', 'what is wrong', 'it breaks', 'a sound client', 'fooled if, after that,'], rows)
}

/** One row per profile, one column per client. */
export function verdictTable(results: readonly Result[]): string {
  const names = clientsIn(results)
  const rows = profiles.map(({ id }) => [
    `\`${id}\``,
    ...names.map((name) => shown(results.find((result) => result.id === id && result.client === name))),
  ])
  return table(['profile', ...names], rows)
}

function shown(result: Result | undefined): string {
  if (result === undefined || result.verdict === 'not reached') return '–'
  return result.verdict === 'fooled' ? '**fooled**' : result.verdict
}

/** Where and with which message each client stops; clients with the same message share a line. */
export function wordsTable(results: readonly Result[]): string {
  const rows = profiles.flatMap(({ id }) => {
    const rejections = results.filter((result) => result.id === id && result.verdict === 'rejected')
    const words = [...new Set(rejections.map(wordsOf))]
    return words.map((said) => {
      const who = rejections.filter((rejection) => wordsOf(rejection) === said).map(({ client }) => client)
      // A library with the same message with and without its further checks is listed once.
      const bare = who.filter((name) => !who.some((other) => name.startsWith(`${other},`)))
      return [`\`${id}\``, bare.join('<br>'), said]
    })
  })
  return table(['profile', 'client', 'where, and its error'], rows)
}

function wordsOf({ step, error }: Result): string {
  return error === undefined ? 'continues, and is not fooled' : `${step}: ${error}`
}

function clientsIn(results: readonly Result[]): readonly string[] {
  return [...new Set(results.map(({ client }) => client))]
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...rows]
    .map((cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`)
    .join('\n')
}

/** The page with every section made from these results. */
export function generated(text: string, results: readonly Result[]): string {
  const sections = [
    ['catalogue', catalogueTable()],
    ['verdicts', verdictTable(results)],
    ['words', wordsTable(results)],
  ] as const
  return sections.reduce((page, [name, content]) => withSection(page, name, content), text)
}
