/**
 * `npm run docs:site` makes a site of docs/ in dist/site: static HTML with a search, which any web server can serve.
 * Every link in it is checked, and nothing in it is fetched from another host.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { dist, root } from '../build/bundle.ts'
import { scriptCommand } from '../command.ts'
import { faultsOf } from './check.ts'
import { siteOf } from './pages.ts'

const here = `${root}scripts/site`
const { base } = scriptCommand('docs:site', 'Makes dist/site: docs/ as static HTML with a search.')
  .option('--base <path>', 'the path below which it will be served, with a slash at both ends', '/')
  .parse()
  .opts<{ base: string }>()

const [source, out] = [`${dist}/site-source`, `${dist}/site`]
for (const folder of [source, out]) rmSync(folder, { recursive: true, force: true })
const { pages, files } = siteOf(root)
for (const [path, content] of pages) write(path, content)
for (const path of files) copy(path, `public/files/${path}.txt`)
copy('docs/images', 'public/images')
const { status, stdout, stderr } = spawnSync(
  process.execPath,
  [`${here}/node_modules/vitepress/bin/vitepress.js`, 'build', here, '--base', base],
  { cwd: root, encoding: 'utf8' },
)
const faults = status === 0 ? faultsOf(out, base) : [`${stdout}${stderr}`]
for (const fault of faults) process.stderr.write(`${fault}\n`)
if (faults.length === 0) process.stdout.write(`dist/site: ${pages.size} pages, ${files.size} copied files\n`)
process.exitCode = faults.length === 0 ? 0 : 1

function write(path: string, content: string): void {
  mkdirSync(dirname(join(source, path)), { recursive: true })
  writeFileSync(join(source, path), content)
}

function copy(from: string, to: string): void {
  mkdirSync(dirname(join(source, to)), { recursive: true })
  cpSync(`${root}${from}`, join(source, to), { recursive: true })
}
