import { Argument, type Command } from 'commander'

const shells = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof shells)[number]

/** A point of the command line, `lychgate client`, and what may follow it. */
interface Place {
  readonly path: string
  readonly words: readonly { readonly word: string; readonly description: string }[]
}

const help = `
The script completes commands, flags and the values of flags that have a list of them.

Examples:
  source <(lychgate completion bash)                                    in ~/.bashrc
  source <(lychgate completion zsh)                                     in ~/.zshrc, after compinit
  lychgate completion fish > ~/.config/fish/completions/lychgate.fish
`

/** Adds `lychgate completion`, which prints a script for the shell. It describes the commands that `program` has. */
export function addCompletionCommand(program: Command): void {
  program
    .command('completion')
    .description('print a script that completes commands and flags in a shell')
    .addArgument(new Argument('<shell>', 'the shell').choices(shells))
    .addHelpText('after', help)
    .action((shell: Shell) => {
      process.stdout.write(scripts[shell](placesOf(program, 'lychgate')))
    })
}

/** Returns the places of a command and of those below it. */
function placesOf(command: Command, path: string): readonly Place[] {
  const helper = command.createHelp()
  const [commands, options] = [helper.visibleCommands(command), helper.visibleOptions(command)]
  const names = commands.map((one) => ({ word: one.name(), description: one.description() }))
  const flags = options.map(({ long, short, description }) => ({ word: long ?? short ?? '', description }))
  const choices = options.flatMap(({ long, argChoices }): Place[] =>
    argChoices === undefined ? [] : [{ path: `${path} ${long}`, words: argChoices.map(plainWord) }],
  )
  const inner = commands.flatMap((one) => placesOf(one, `${path} ${one.name()}`))
  return [{ path, words: [...names, ...flags] }, ...choices, ...inner]
}

function plainWord(word: string): { word: string; description: string } {
  return { word, description: '' }
}

/** Quotes a text for all three shells: it has no quote and no backslash in it. */
function quoted(text: string): string {
  return `'${text.replaceAll(/['\\]/g, '')}'`
}

/** Where the flag before the cursor has a list of values, the place is that flag; otherwise the command so far. */
const scripts: Readonly<Record<Shell, (places: readonly Place[]) => string>> = {
  bash: (places) => `_lychgate() {
  local place=lychgate word words=''
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$place $word" in
    ${commandsOf(places).map(quoted).join(' | ')}) place="$place $word" ;;
    esac
  done
  case "$place \${COMP_WORDS[COMP_CWORD-1]}" in
  ${valuesOf(places).map(quoted).join(' | ')}) place="$place \${COMP_WORDS[COMP_CWORD-1]}" ;;
  esac
  case "$place" in
${places.map(({ path, words }) => `  ${quoted(path)}) words=${quoted(words.map(({ word }) => word).join(' '))} ;;`).join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _lychgate lychgate
`,
  zsh: (places) => `#compdef lychgate
_lychgate() {
  local place=lychgate word
  local -a found
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$place $word" in
    ${commandsOf(places).map(quoted).join(' | ')}) place="$place $word" ;;
    esac
  done
  case "$place \${words[CURRENT-1]}" in
  ${valuesOf(places).map(quoted).join(' | ')}) place="$place \${words[CURRENT-1]}" ;;
  esac
  case "$place" in
${places.map(({ path, words }) => `  ${quoted(path)}) found=(${words.map(({ word, description }) => quoted(description ? `${word}:${description.replaceAll(':', ',')}` : word)).join(' ')}) ;;`).join('\n')}
  esac
  _describe lychgate found || _files
}
compdef _lychgate lychgate
`,
  fish: (places) => `function __lychgate_place
  set -l place lychgate
  set -l words (commandline -opc)
  for word in $words[2..-1]
    contains -- "$place $word" ${commandsOf(places).map(quoted).join(' ')}; and set place "$place $word"
  end
  contains -- "$place $words[-1]" ${valuesOf(places).map(quoted).join(' ')}; and set place "$place $words[-1]"
  echo $place
end
${places
  .flatMap(({ path, words }) =>
    words.map(
      ({ word, description }) =>
        `complete -c lychgate -n "test (__lychgate_place) = ${quoted(path)}" -a ${quoted(word)} -d ${quoted(description)}`,
    ),
  )
  .join('\n')}
`,
}

function commandsOf(places: readonly Place[]): readonly string[] {
  return places.map(({ path }) => path).filter((path) => path !== 'lychgate' && !path.includes(' -'))
}

function valuesOf(places: readonly Place[]): readonly string[] {
  return places.map(({ path }) => path).filter((path) => path.includes(' -'))
}
