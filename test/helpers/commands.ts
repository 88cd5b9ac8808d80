import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type Ended, ended } from './command.ts'

const self = fileURLToPath(import.meta.url)

/**
 * Runs command lines one after the other in one process of their own, which costs little more than one of them. Nobody
 * sits at a terminal, and nothing comes on standard input.
 */
export async function runAll(
  lines: readonly (readonly string[])[],
  environment: Readonly<Record<string, string>> = {},
): Promise<readonly Ended[]> {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('LYCHGATE_'))
  const env = { ...Object.fromEntries(inherited), ...environment }
  const child = spawn(process.execPath, [self, JSON.stringify(lines)], { env })
  child.stdin.end()
  const { code, stdout, stderr } = await ended(child)
  if (code !== 0) throw new Error(stderr)
  return JSON.parse(stdout) as Ended[]
}

async function runHere(lines: readonly (readonly string[])[]): Promise<void> {
  const { main } = await import('../../src/main.ts')
  const { stdout, stderr } = process
  const write = stdout.write.bind(stdout)
  const results: Ended[] = []
  for (const line of lines) {
    const said = { stdout: '', stderr: '' }
    const hear = (stream: keyof typeof said) => (text: string | Uint8Array) => {
      said[stream] += String(text)
      return true
    }
    stdout.write = hear('stdout')
    stderr.write = hear('stderr')
    results.push({ code: await main(['node', 'lychgate', ...line]), ...said })
  }
  stdout.write = write
  write(JSON.stringify(results))
}

if (process.argv[1] === self) await runHere(JSON.parse(process.argv[2] ?? '[]'))
