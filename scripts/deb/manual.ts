/** The manual pages of the command line, made from what `--help` prints. */
import type { Command } from 'commander'
import { isoInstant } from '../../src/system/system.ts'

/** Returns the pages by file name: one for the program, and one for each command with all of its own commands. */
export function manualPages(
  program: Command,
  { version, instant }: { readonly version: string; readonly instant: number },
): Readonly<Record<string, string>> {
  const date = isoInstant(instant).slice(0, 10)
  const page = (name: string, description: string, content: string) =>
    `.TH ${name.toUpperCase()} 1 ${date} "Lychgate ${version}" "Lychgate"\n.SH NAME\n${name} \\- ${roff(description)}\n${content}`
  const top = program.commands.map((command) => {
    const name = `lychgate-${command.name()}`
    return [`${name}.1`, page(name, command.description(), withInner(command))] as const
  })
  const own = page('lychgate', program.description().replace(/\.$/, ''), sections(helpOf(program), 'SH'))
  return Object.fromEntries([['lychgate.1', own], ...top])
}

/** The help of a command, and of the commands below it. */
function withInner(command: Command): string {
  const inner = command.commands.filter((one) => one.name() !== 'help')
  const parts = inner.map((one) => `.SH ${one.name().toUpperCase()}\n${sections(helpOf(one), 'SS')}`)
  return [sections(helpOf(command), 'SH'), ...parts].join('')
}

/** Prints into a text what `--help` prints, with what is added to it. */
function helpOf(command: Command): string {
  let text = ''
  command.configureOutput({
    writeOut: (part) => {
      text += part
    },
    getOutHelpWidth: () => 80,
  })
  command.outputHelp()
  return text
}

/** A line that ends with a colon, or begins with `Usage:`, begins a section; all else is shown as it is. */
function sections(help: string, macro: 'SH' | 'SS'): string {
  const lines = help
    .trimEnd()
    .split('\n')
    .map((line) => {
      const [, usage] = /^Usage: (.*)$/.exec(line) ?? []
      if (usage !== undefined) return `.${macro} SYNOPSIS\n.nf\n${roff(usage)}`
      const [, heading] = /^([A-Z][\w ]*):$/.exec(line) ?? []
      return heading === undefined ? roff(line) : `.fi\n.${macro} ${heading.toUpperCase()}\n.nf`
    })
  return `${lines.join('\n')}\n.fi\n`
}

/** Escapes what roff would read as a command. */
function roff(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^([.'])/, '\\&$1')
}
