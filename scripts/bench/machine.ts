import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { fileURLToPath } from 'node:url'

/** What was measured, and on what: without it the figures mean nothing. */
export function machine(): string {
  const cores = cpus()
  const peers = ['oidc-provider', 'fastify', 'better-sqlite3'].map((name) => `${name} ${versionOf(name)}`)
  const hardware = `${cores[0]?.model.trim()}, ${cores.length} cores`
  return [hardware, `Node ${process.version}`, `Lychgate ${ownVersion()}`, ...peers].join(', ')
}

function versionOf(name: string): string {
  const manifest = new URL(`node_modules/${name}/package.json`, import.meta.url)
  return (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version
}

function ownVersion(): string {
  const executable = fileURLToPath(new URL('../../dist/lychgate', import.meta.url))
  return spawnSync(executable, ['--version'], { encoding: 'utf8' }).stdout.trim()
}
