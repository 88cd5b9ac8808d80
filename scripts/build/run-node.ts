import { execFileSync } from 'node:child_process'

/** Runs Node in this folder with no environment but the one given; what it prints is told only when it fails. */
export function runNode(
  folder: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): void {
  execFileSync(process.execPath, args, { cwd: folder, env: environment, stdio: 'pipe' })
}
