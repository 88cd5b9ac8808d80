/** The fenced blocks of a page of documentation, and the purpose of each. */

/** A fenced block. `server`, or the name of the file that it contains, may follow its language. */
export interface Block {
  readonly language: string
  readonly word?: string
  readonly content: string
  /** The line of its fence, from 1. */
  readonly line: number
}

/** Commands, with the expected output below. */
export interface Step {
  readonly block: Block
  readonly expected?: Block
}

/** What to do with the blocks of a page. */
export interface Plan {
  /** In order, in one shell session. */
  readonly steps: readonly Step[]
  /** Blocks with a file name, written before the session begins. */
  readonly files: readonly Block[]
  /** Commands for another machine, pieces of configuration: only shown. */
  readonly shown: readonly Block[]
}

/** Every fenced block of a page. */
export function blocksOf(markdown: string): readonly Block[] {
  return [...markdown.matchAll(/^```([^\s`]*)(?: (\S+))?\n([\s\S]*?)^```$/gm)].map((match) => {
    const [, language = '', word, content = ''] = match
    const line = markdown.slice(0, match.index).split('\n').length
    return { language, ...(word !== undefined && { word }), content, line }
  })
}

/**
 * `sh` is run, and the output block that follows is compared; a block with a file name is written; the rest is shown.
 */
export function planOf(blocks: readonly Block[]): Plan {
  const isOutput = ({ word, language }: Block) => word === undefined && /^(text|json|http)$/.test(language)
  const steps = blocks.flatMap((block, index): Step[] => {
    if (block.language !== 'sh') return []
    const next = blocks[index + 1]
    return [{ block, ...(next && isOutput(next) && { expected: next }) }]
  })
  const files = blocks.filter(({ language, word }) => language !== 'sh' && word !== undefined)
  const used = [...steps.flatMap(({ block, expected = block }) => [block, expected]), ...files]
  return { steps, files, shown: blocks.filter((block) => !used.includes(block)) }
}

/** Begins the output of a step. */
const mark = '\u001e'

/**
 * The shell session of a page. A reader leaves the last line of a `server` block running in its terminal; here it runs
 * in the background, once it reports that it is ready. `npm ci` was run once for every page.
 */
export function sessionOf(steps: readonly Step[]): string {
  const prelude = `exec 2>&1
npm() { [ "$1" = ci ] || command npm "$@"; }
beside() {
  local log; log=$(mktemp); "$@" >"$log" 2>&1 &
  until grep -qi ready "$log"; do kill -0 $! 2>/dev/null || { cat "$log"; return 1; }; sleep 0.1; done
}
`
  const parts = steps.map(({ block: { content, word } }, index) => {
    const lines = content.trimEnd().split('\n')
    const last = lines.pop() ?? ''
    return [
      `printf '${mark}%s\\n' ${index}`,
      ...lines,
      word === 'server' ? last.replace(/^(.* && )?/, '$1beside ') : last,
    ].join('\n')
  })
  return `${prelude}${parts.join('\n')}\n`
}

/** The output of each step that began. */
export function outputsOf(output: string): readonly string[] {
  return output
    .replaceAll(/[ \r]+$/gm, '')
    .split(new RegExp(`${mark}\\d+\n`))
    .slice(1)
}

/**
 * Whether these lines are in the output: `…` matches anything on a line, on a line of its own any lines, and a space
 * any number of spaces.
 */
export function isIn(output: string, { content }: Block): boolean {
  const lines = content.trimEnd().split('\n')
  const pattern = lines.map((line) =>
    line.trim() === '…'
      ? '[\\s\\S]*?'
      : line
          .replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
          .replaceAll(/ +/g, ' +')
          .replaceAll('…', '.*?'),
  )
  return new RegExp(`^${pattern.join('\n')}$`, 'm').test(output)
}
