import { Command, InvalidArgumentError, Option } from 'commander'

/**
 * The command line of `npm run <name>`. `--help` shows it, and an option it cannot use ends the script with 64 and a
 * line that states why.
 */
export function scriptCommand(name: string, description: string): Command {
  return new Command(`npm run ${name} --`)
    .description(description)
    .helpOption('--help', 'print this')
    .showHelpAfterError()
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 64))
}

/** For an option: a count of at least one. */
export function readCount(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It must be a whole number, at least 1.')
}

/** An option that takes several counts, such as `1,16,64`; the help shows them as they are typed. */
export function countsOption(flags: string, description: string, otherwise: readonly number[]): Option {
  return new Option(flags, description)
    .argParser((text) => text.split(',').map(readCount))
    .default(otherwise, otherwise.join(','))
}

/** For an option: a time, which may have a fraction. */
export function readSeconds(text: string): number {
  const seconds = Number(text)
  if (/^\d{1,5}(\.\d{1,3})?$/.test(text) && seconds > 0) return seconds
  throw new InvalidArgumentError('It must be a number of seconds, such as 0.5.')
}
