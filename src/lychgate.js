#!/usr/bin/env node
// Plain JavaScript, and no import of ours above the check: an older Node cannot read the rest, and the SQLite driver
// ends such a process without a word.
import { existsSync } from 'node:fs'
import module from 'node:module'
import { fileURLToPath } from 'node:url'

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
const isTooOld = major < 24 || (major === 24 && minor < 7) || Number(process.versions.napi) < 10

if (isTooOld) {
  process.stderr.write(`lychgate: Node.js 24.7 or newer is required, this is ${process.versions.node}\n`)
  process.exitCode = 78
} else {
  // The npm package has the sources as a bundle: Node strips no types below node_modules.
  const isCheckout = existsSync(new URL('main.ts', import.meta.url))
  // A command takes half the CPU when Node need not strip and compile the sources again.
  const compiled = new URL('../node_modules/.cache/lychgate', import.meta.url)
  if (isCheckout) module.enableCompileCache(fileURLToPath(compiled))
  const { main } = await import(isCheckout ? './main.ts' : '../dist/main.js')
  process.exitCode = await main(process.argv)
}
