import { countRows } from './counts.ts'
import type { DocumentVerdict, State, Verdict } from './judge.ts'

/**
 * The text of docs/conformance.md: the same verdicts always give the same text.
 * @param byOthers - what a suite of other authors found, a section in Markdown; empty if there is none
 */
export function conformancePage(documents: readonly DocumentVerdict[], byOthers: string): string {
  const [heading = [], ...rows] = countRows(documents)
  const summary = rows.map(([name = '', ...counts]) => [
    name === 'all' ? '**all**' : toSection(name),
    ...counts,
  ])
  return `${[
    introduction,
    table(heading, summary),
    ...(byOthers === '' ? [] : [byOthers.trimEnd()]),
    ...documents.map(({ document, verdicts }) =>
      [`## ${document.name}`, `From [${document.file}](../${document.file}).`, clauseTable(verdicts)].join(
        '\n\n',
      ),
    ),
  ].join('\n\n')}\n`
}

const introduction = `# Conformance

Every clause that applies to this server, one a line: its state, the tests that prove it, and the file that
implements it, the deciding one first. \`npm run requirements\` generates it from the ledger in
[test/requirements](../test/requirements) and from the results of a run of all tests. To do it yourself:

\`\`\`sh
npm test && npm run requirements
\`\`\`

It fails, and writes nothing, when a MUST or MUST NOT of a shipped feature has no passing test or assertion of its own,
when a title names more than four clauses, when a proof failed, was skipped or asserts nothing, when a test or an error
in the source names a clause that does not exist, and when the files have changed since the tests ran.

| state | meaning |
| --- | --- |
| over HTTP | a test or an assertion that names the clause passed, and its file only talks to a listening server |
| white-box | a test of the code itself passed; a client cannot see what the clause is about |
| declined | this server does not do it, and the line gives the reason |
| planned | it comes with a feature that does not exist yet, which the line names |
| unproven | no test proves it, and the line gives no reason; no MUST of a shipped feature can be here |

Documents of which most is planned come last. *Service specification* is what this server offers where the standards
leave a choice: its paths, its scopes, registration for programs on the user's own computer, and anonymous access; its
ids begin with \`service-\`. Where documents disagree the ledger says so (\`conflict\`), and how it is settled (\`settled\`).`

const shown: Readonly<Record<State, string>> = {
  'over HTTP': 'over HTTP',
  'white-box': 'white-box',
  declined: '**declined**',
  planned: 'planned',
  unproven: '**unproven**',
}

function clauseTable(verdicts: readonly Verdict[]): string {
  const rows = verdicts.map(({ clause, state, proofs }) => {
    const { id, level, statement, declined, planned, source = [] } = clause
    const tests = proofs.map(({ file, title }) => `${link(file, 'test/')} ${escaped(title)}`)
    const response = [...new Set(tests)].join('<br>') || escaped(declined ?? planned ?? '')
    const files = source.map((file) => link(file, 'src/')).join('<br>')
    return [`<a id="${id}"></a>${id}`, level, escaped(statement), shown[state], response, files]
  })
  return table(['clause', 'level', 'what it asks', 'state', 'proof or reason', 'implemented in'], rows)
}

function table(heading: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [heading, heading.map(() => '---'), ...rows]
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

function link(file: string, folder: string): string {
  return `[${file.startsWith(folder) ? file.slice(folder.length) : file}](../${file})`
}

/** The anchor that a Git host gives a heading. */
function toSection(name: string): string {
  return `[${name}](#${name
    .toLowerCase()
    .replaceAll(/[^\w -]/g, '')
    .replaceAll(' ', '-')})`
}

/** Escapes text for Markdown; an underscore within a word needs no escape. */
function escaped(text: string): string {
  return text.replaceAll(/[\\`*[\]<>|~]|\b_|_\b/g, (character) => `\\${character}`).replaceAll(/\s+/g, ' ')
}
