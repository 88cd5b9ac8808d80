#!/usr/bin/env node
// Plain JavaScript, and no import above the check: an older Node cannot read the rest, and the SQLite driver
// ends such a process without a word.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
const isTooOld = major < 24 || (major === 24 && minor < 7) || Number(process.versions.napi) < 10

if (isTooOld) {
  process.stderr.write(`lychgate: Node.js 24.7 or newer is required, this is ${process.versions.node}\n`)
  process.exitCode = 78
} else {
  const { main } = await import('./main.ts')
  process.exitCode = await main(process.argv)
}
