import type { Command } from 'commander'
import { ConfigError } from '../config/error.ts'
import { developmentFaults } from '../settings/checks.ts'
import { settingsOf } from '../settings/effective.ts'
import { type ResolvedConfig, resolveConfig } from '../settings/load.ts'
import { addServerFlags, type ServerFlags } from './flags.ts'
import { printColumns, printJson, visible } from './print.ts'

interface ConfigFlags extends ServerFlags {
  readonly dev?: true
  readonly json?: true
}

interface PrintFlags extends ConfigFlags {
  readonly changed?: true
}

const help = `
Both read the settings as lychgate serve does. With --dev they apply the rules of lychgate dev, which needs no secret.

Examples:
  lychgate config print --changed
  lychgate config print --json | jq .settings.issuer
  lychgate config validate --config lychgate.yaml
`

/** Adds `lychgate config …`, which prints and validates the settings. */
export function addConfigCommands(program: Command): void {
  const group = program.command('config').description('print and validate the configuration')
  const print = group
    .command('print')
    .description('print every option with its value and its source; passwords are masked')
  print.option('--changed', 'only options from a flag, a variable or the file')
  addConfigFlags(print).action(configPrint)
  const validate = group.command('validate').description('check the configuration and print every fault')
  addConfigFlags(validate).action(configValidate)
}

function addConfigFlags(command: Command): Command {
  return addServerFlags(command)
    .option('--dev', 'apply the rules of lychgate dev')
    .option('--json', 'print JSON')
    .addHelpText('after', help)
}

function configPrint(flags: PrintFlags): void {
  const { config, file, origins } = resolve(flags)
  const settings = settingsOf(config, origins).filter(({ source }) => !flags.changed || source !== 'default')
  if (flags.json) {
    const byOption = settings.map(({ option, ...setting }) => [option, setting])
    printJson({ mode: config.mode, file, settings: Object.fromEntries(byOption) })
    return
  }
  printColumns(settings.map(({ option, value, source, name }) => [option, shown(value), name ?? source]))
}

async function configValidate({ json, ...flags }: ConfigFlags): Promise<void> {
  const mode = modeOf(flags)
  try {
    const { config, file, origins } = resolve(flags)
    // Loaded late: no other command looks at the pages.
    const { loadTheme } = await import('../pages/theme/theme.ts')
    loadTheme(config)
    const names = [...origins.values()].map(({ name }) => name)
    const sources = [...new Set([file ?? [], names].flat())]
    const from = sources.length === 0 ? 'every option has its default' : sources.join(', ')
    if (json) printJson({ valid: true, mode, sources })
    else process.stdout.write(`valid for lychgate ${mode}: ${visible(from)}\n`)
  } catch (error) {
    if (json && error instanceof ConfigError) printJson({ valid: false, mode, faults: error.faults })
    throw error
  }
}

function resolve(flags: PrintFlags): ResolvedConfig {
  const { dev: _dev, json: _json, changed: _changed, config: file, ...settings } = flags
  const mode = modeOf(flags)
  const resolved = resolveConfig({ mode, flags: settings, environment: process.env, file })
  const faults = mode === 'dev' ? [...developmentFaults(resolved.config)] : []
  if (faults.length > 0) throw new ConfigError(faults)
  return resolved
}

function modeOf({ dev }: ConfigFlags): 'dev' | 'serve' {
  return dev ? 'dev' : 'serve'
}

function shown(value: unknown): string {
  if (value === undefined) return '-'
  if (Array.isArray(value) && value.length > 3) return `${value.length} entries`
  return typeof value === 'string' ? value : JSON.stringify(value)
}
