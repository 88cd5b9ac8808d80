import { pino } from 'pino'

/** Standard output for the log: the lines of one turn of the event loop share a write; those of an ending process, too. */
export function logLines(): { write(line: string): void } {
  const output = pino.destination({ dest: 1, sync: true, minLength: 16_000 })
  let isScheduled = false
  const flush = () => {
    isScheduled = false
    output.flushSync()
  }
  return {
    write: (line) => {
      output.write(line)
      if (isScheduled) return
      isScheduled = true
      setImmediate(flush)
    },
  }
}
