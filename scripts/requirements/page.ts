import { countRows } from './counts.ts'
import type { DocumentVerdict, State, Verdict } from './judge.ts'

/** The text of docs/conformance.md: the same verdicts always give the same text. */
export function conformancePage(documents: readonly DocumentVerdict[]): string {
  const [heading = [], ...rows] = countRows(documents)
  const summary = rows.map(([name = '', ...counts]) => [
    name === 'all' ? '**all**' : toSection(name),
    ...counts,
  ])
  return `${[
    introduction,
    table(heading, summary),
    ...documents.map(({ document, verdicts }) =>
      [`## ${document.name}`, `From [${document.file}](../${document.file}).`, clauseTable(verdicts)].join(
        '\n\n',
      ),
    ),
  ].join('\n\n')}\n`
}

const introduction = `# Conformance

Every clause this server answers to, one a line: what became of it, the tests that prove it, and the file that
implements it, the deciding one first. Nothing here is written by hand: \`npm run requirements\` makes it from the
ledger in [test/requirements](../test/requirements) and from the results of a run of all tests. To do it yourself:

\`\`\`sh
npm test && npm run requirements
\`\`\`

It fails, and writes nothing, when a MUST or MUST NOT of what is shipped has no passing test, when a proof failed, was
skipped or asserts nothing, when a title or a refusal in the source names a clause that does not exist, and when the
results are not those of the files as they are.

| state | what it says |
| --- | --- |
| over HTTP | a test that carries the clause in its title passed, against a listening server or the command |
| white-box | a test of the code itself passed; the clause is about something no client can see |
| declined | this server does not do it, and the line says why |
| planned | it comes with a feature that is not there yet, which the line names |
| unproven | nothing proves it, and nothing says why; no MUST of what is shipped can be here |

Documents of which most is planned come last. *Service specification* is what this server offers where the standards
leave a choice: its paths, its scopes, registration for programs on the person's own computer, and anonymous access; its
ids begin with \`service-\`. Where documents disagree the ledger says so (\`conflict\`) and how it was settled (\`settled\`).`

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
    const answer = [...new Set(tests)].join('<br>') || escaped(declined ?? planned ?? '')
    const files = source.map((file) => link(file, 'src/')).join('<br>')
    return [`<a id="${id}"></a>${id}`, level, escaped(statement), shown[state], answer, files]
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

/** The address a Git host gives a heading. */
function toSection(name: string): string {
  return `[${name}](#${name
    .toLowerCase()
    .replaceAll(/[^\w -]/g, '')
    .replaceAll(' ', '-')})`
}

/** Text that Markdown leaves alone; an underscore within a word means nothing to it. */
function escaped(text: string): string {
  return text.replaceAll(/[\\`*[\]<>|~]|\b_|_\b/g, (character) => `\\${character}`).replaceAll(/\s+/g, ' ')
}
