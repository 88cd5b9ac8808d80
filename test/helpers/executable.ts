import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Config } from '../../src/config/schema.ts'
import { spawnFile } from './command.ts'

/** A server of the executable. */
export interface Outside {
  stop(): Promise<void>
}

/** A store that a second process can open as well. */
export function storeForTwo(): { readonly url: string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'lychgate-executable-'))
  const remove = () => rmSync(folder, { recursive: true, force: true })
  return { url: `sqlite:${folder}/lychgate.db`, remove }
}

/** With how many workers each server of the executable runs. */
const workers = Number(process.env['TEST_WORKERS'] ?? 1)

/** Starts `serve` of this executable with an empty environment, and waits until it responds. */
export async function startOutside(file: string, config: Config, store: string): Promise<Outside> {
  const folder = mkdtempSync(join(tmpdir(), 'lychgate-executable-'))
  const { mode: _mode, ...options } = config
  // JSON is YAML.
  writeFileSync(
    join(folder, 'lychgate.yaml'),
    JSON.stringify({ ...options, store, workers, drainSeconds: 0 }),
  )
  const child = spawnFile(file, ['serve', '--config', 'lychgate.yaml'], {}, folder)
  let said = ''
  child.stdout.on('data', () => undefined)
  child.stderr.on('data', (text) => {
    said += text
  })
  const exit = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const isReady = async () =>
    (await fetch(`http://localhost:${config.port}/readyz`).catch(() => undefined))?.ok
  while (!(await isReady())) {
    if (child.exitCode !== null) throw new Error(`it ended: ${said}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return {
    async stop() {
      child.kill('SIGTERM')
      await exit
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
