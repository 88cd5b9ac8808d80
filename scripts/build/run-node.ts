import { execFileSync } from 'node:child_process'

/** Runs Node in this folder with only the given environment; its output is shown only if it fails. */
export function runNode(
  folder: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): void {
  execFileSync(process.execPath, args, { cwd: folder, env: environment, stdio: 'pipe' })
}
