import { pino } from 'pino'

/** Standard output for the log: the lines of one turn of the event loop share a write; those of an ending process, too. */
export function logLines(): { write(line: string): void } {
  output ??= gatheringOutput()
  return output
}

// There is one standard output, however many servers a process has.
let output: { write(line: string): void } | undefined

function gatheringOutput(): { write(line: string): void } {
  const destination = pino.destination({ dest: 1, sync: true })
  let gathered = ''
  const flush = () => {
    const lines = gathered
    gathered = ''
    if (lines !== '') destination.write(lines)
  }
  process.on('exit', () => {
    flush()
    destination.flushSync()
  })
  return {
    write: (line) => {
      if (gathered === '') setImmediate(flush)
      gathered += line
    },
  }
}
