/** The process that started this one, at the time this module was loaded. */
const parent = process.ppid

/**
 * Ends this process as SIGTERM does once the shell of `npm start` has gone. npm passes a signal to that shell only, and
 * the shell does not pass it on: the server would keep its port. Where the script does more than start Lychgate, its
 * shell may end first on purpose, and nothing is watched.
 */
export function endWithNpm(environment: Readonly<Record<string, string | undefined>>): void {
  if (!isOnlyCommandOfNpm(environment)) return
  const watch = setInterval(() => {
    if (process.ppid === parent && isRunning(parent)) return
    clearInterval(watch)
    process.kill(process.pid, 'SIGTERM')
  }, 250)
  watch.unref()
}

/** Whether an npm script, or `npm exec`, runs one command and that is ours. */
export function isOnlyCommandOfNpm(environment: Readonly<Record<string, string | undefined>>): boolean {
  const { npm_lifecycle_event: event, npm_lifecycle_script: script = '' } = environment
  return event !== undefined && /^(node +)?\S*\blychgate\b[^\n;&|()`$]*$/.test(script)
}

/** Windows keeps the number of a parent that has ended. */
function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
