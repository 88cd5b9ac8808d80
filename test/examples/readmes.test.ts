/** Compares the READMEs of the examples with the examples. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { example } from '../helpers/examples.ts'

const root = new URL('../..', import.meta.url).pathname
const table = readFileSync(join(root, 'docs/README.md'), 'utf8')
const yaml = readFileSync(example('lychgate.yaml'), 'utf8')
const folders = readdirSync(example(''), { withFileTypes: true }).filter((entry) => entry.isDirectory())

for (const { name } of folders) {
  t.test(`the README of ${name} is short, and names files and URLs that exist`, async (t) => {
    const readme = readFileSync(example(`${name}/README.md`), 'utf8')
    t.ok(readme.split('\n').length <= 31, 'at most 30 lines')
    t.match(table, `| [${name}](../examples/${name}) |`)
    const files = [...readme.matchAll(/(?<![\w/])examples\/[\w/.-]*\w/g)].map(([file]) => file)
    for (const file of files) t.ok(existsSync(join(root, file)), file)
    t.ok(
      files.some((file) => file.startsWith(`examples/${name}/`)),
      'it can be started',
    )

    const sources = readdirSync(example(name)).filter((file) => /\.(ts|sh)$/.test(file))
    const source = sources.map((file) => readFileSync(example(`${name}/${file}`), 'utf8')).join('\n')
    t.match(source, /http:\/\/localhost:9400/, 'without settings it is for `npm start`')
    const addresses = new Set(readme.match(/http:\/\/127\.0\.0\.1:\d+/g))
    for (const address of addresses) t.match(source, address)
    for (const [, resource = ''] of source.matchAll(/RESOURCE: resource = '([^']+)'/g)) {
      t.match(yaml, `identifier: ${resource}\n`)
      t.match(readme, 'npm start -- --config examples/lychgate.yaml\n')
    }
  })
}
