/** Writes the example files of deploy/ from ConfigSchema; with --check it only compares. */
import { readFileSync, writeFileSync } from 'node:fs'
import type { TSchema } from '@sinclair/typebox'
import { stringify } from 'yaml'
import { ConfigSchema, confidentialPaths, demandOf, isSection, variableOf } from '../src/settings/options.ts'

const yamlHead = `# Every option of Lychgate. To set one, remove the # before its name and that of its section.
# The values are the defaults, or examples if the comment says so. Times are in seconds.
#
#   lychgate serve --config lychgate.yaml        or LYCHGATE_CONFIG=lychgate.yaml
#   lychgate config validate --config lychgate.yaml
#
# Flags override variables, variables override this file. Generated from the schema: npm run generate -- config-example`

const envHead = `# Every variable of lychgate serve. To set one, remove the # before its name. Empty ones are unset.
# The values are the defaults, or examples if the comment says so. Times are in seconds.
# Read by the compose files as deploy/.env, and by lychgate.service as /etc/lychgate/env.
#
# Flags override variables, variables override the file. Generated from the schema: npm run generate -- config-example`

/**
 * Options in the YAML form; lines that begin with # and a name, a dash or a bracket are settings, the rest is prose.
 */
export function exampleYaml(): string {
  return `${[yamlHead, ...sectionBlocks(ConfigSchema, '')].join('\n\n')}\n`
}

/** Options as variables, without those that only the file can contain. */
export function exampleEnvironment(): string {
  const file =
    '# The configuration file, lychgate.yaml, for options without a variable.\n# (an example, no default)'
  return `${[envHead, `${file}\n#LYCHGATE_CONFIG=/etc/lychgate/lychgate.yaml`, ...variableBlocks(ConfigSchema, '')].join('\n\n')}\n`
}

function membersOf(schema: TSchema): [string, TSchema][] {
  return Object.entries(schema.properties)
}

function sectionBlocks(section: TSchema, prefix: string): string[] {
  return membersOf(section).flatMap(([name, schema]) => {
    const path = prefix + name
    const indent = prefix === '' ? '' : '  '
    if (isSection(schema)) {
      const head = [prose(schema.description), `#${name}:`].join('\n')
      return [head, ...sectionBlocks(schema, `${path}.`)]
    }
    const lines = [
      prose(schema.description, indent),
      `${indent}# ${facts(schema, name, variableNote(schema, path))}`,
    ]
    return [[...lines, ...valueLines(name, schema, indent)].join('\n')]
  })
}

function valueLines(name: string, schema: TSchema, indent: string): string[] {
  if (schema.items?.type !== 'object') return [`${indent}#${name}: ${yaml(exampleOf(schema))}`]
  const [first, ...others]: Record<string, unknown>[] = exampleOf(schema)
  const members = membersOf(schema.items).flatMap(([member, inner], index) => {
    const dash = `${indent}${index === 0 ? '  #- ' : '    #'}`
    return [
      prose(inner.description, `${indent}${index === 0 ? '  ' : '    '}`),
      `${dash}${member}: ${yaml(first?.[member])}`,
    ]
  })
  return [`${indent}#${name}:`, ...members, ...others.map((entry) => `${indent}  #- ${yaml(entry)}`)]
}

function variableBlocks(section: TSchema, prefix: string): string[] {
  return membersOf(section).flatMap(([name, schema]) => {
    const path = prefix + name
    // Services read the file, and `lychgate serve` rejects these.
    if (path === 'dev') return []
    if (isSection(schema)) return variableBlocks(schema, `${path}.`)
    if (schema.type === 'object' || schema.items?.type === 'object') return []
    const lines = [prose(schema.description), `# ${facts(schema, name, path)}`]
    const block = [...lines, `#${variableOf(path)}=${[exampleOf(schema)].flat().join(',')}`].join('\n')
    if (!confidentialPaths.includes(path)) return [block]
    const file = `# The file that contains ${variableOf(path)}; set one of the two.\n# (an example, no default)`
    return [block, `${file}\n#${variableOf(path)}_FILE=/run/secrets/${variableOf(path).toLowerCase()}`]
  })
}

function exampleOf(schema: TSchema) {
  return schema.examples?.[0] ?? schema.default
}

function yaml(value: unknown): string {
  if (value === undefined) return ''
  return stringify(value, { collectionStyle: 'flow', lineWidth: 0, flowCollectionPadding: false }).trim()
}

function variableNote(schema: TSchema, path: string): string {
  return schema.type === 'object' || schema.items?.type === 'object' ? 'file only' : variableOf(path)
}

/** `(LYCHGATE_PORT; an integer from 0 to 65535)`: its variable, its values, its unit and its default. */
function facts(schema: TSchema, name: string, other: string): string {
  const unit = /Seconds$/.test(name) ? ' of seconds' : /Bytes$/.test(name) ? ' of bytes' : ''
  const kind = demandOf(schema)
    .replace(/^must be /, '')
    .replace('an integer', `a whole number${unit}`)
  const isExample = schema.examples !== undefined
  const shipped =
    Array.isArray(schema.default) && schema.default.length > 3 ? 'the shipped ones' : yaml(schema.default)
  const standard = schema.default === undefined ? 'no default' : `default ${shipped}`
  const notes = [other, kind, unit === ' of seconds' ? duration(schema.default) : undefined]
  return `(${[...notes, isExample ? `an example, ${standard}` : undefined].filter(Boolean).join('; ')})`
}

/** `30 days`: a long time in words. */
function duration(seconds: number): string | undefined {
  const unit = (
    [
      ['day', 86_400],
      ['hour', 3600],
      ['minute', 60],
    ] as const
  ).find(([, size]) => seconds >= size && seconds % size === 0)
  if (unit === undefined) return undefined
  const [name, size] = unit
  return `${seconds} is ${seconds / size} ${name}${seconds === size ? '' : 's'}`
}

/** A description as comment lines of at most 100 characters. */
function prose(text = '', indent = ''): string {
  const lines: string[] = ['']
  for (const word of text.split(' ')) {
    const last = lines.length - 1
    if (`${indent}# ${lines[last]} ${word}`.length > 100) lines.push(word)
    else lines[last] = `${lines[last]} ${word}`.trim()
  }
  return lines.map((line) => `${indent}# ${line}`).join('\n')
}

if (import.meta.main) {
  const files: [string, string][] = [
    ['deploy/config.example.yaml', exampleYaml()],
    ['deploy/.env.example', exampleEnvironment()],
  ]
  for (const [path, wanted] of files) {
    const file = new URL(`../${path}`, import.meta.url)
    if (!process.argv.includes('--check')) writeFileSync(file, wanted)
    else if (readFileSync(file, 'utf8') !== wanted) {
      process.stderr.write(`${path}: out of date; run npm run generate -- config-example\n`)
      process.exitCode = 1
    }
  }
}
