/** `npm run fuzz`: generated requests, and the first response that breaks a rule. See test/fuzz/run.ts. */
import { InvalidArgumentError } from 'commander'
import { requestsPerWorld, runFuzz } from '../test/fuzz/run.ts'
import { readCount, scriptCommand } from './command.ts'

const options = scriptCommand(
  'fuzz',
  'Sends generated requests to every endpoint of servers in this process, over real connections.',
)
  .option('--seed <number>', 'the same requests again; drawn by lot when left out', readIndex)
  .option('--requests <number>', 'how many', readCount, 100_000)
  .option(
    '--only <index>',
    `repeats one request, with the ${requestsPerWorld - 1} at most that it builds upon, and prints it`,
    readIndex,
  )
  .parse()
  .opts<{ seed?: number; requests: number; only?: number }>()
const { only, seed = Math.floor(Math.random() * 2 ** 31) } = options
const requests = only === undefined ? options.requests : only + 1

const started = performance.now()
const say = (line: string) => process.stdout.write(`${line}\n`)
say(`seed ${seed}, ${requests} requests`)
const result = await runFuzz({
  seed,
  requests,
  ...(only !== undefined && { only }),
  observe: (index, sent, responses) => {
    if (index === only)
      say(JSON.stringify({ ...sent, body: sent.body.toString('latin1'), responses }, null, 2))
  },
})
const seconds = Math.round((performance.now() - started) / 1000)
if (only === undefined) {
  for (const [what, count] of [...result.statuses].sort()) say(`${String(count).padStart(7)} ${what}`)
}
if (result.finding) {
  const { index, fault, curl, response } = result.finding
  say(`\nrequest ${index} of seed ${seed}: ${fault}\n\n${curl}\n\n${response}\n`)
  say(`Repeat it: npm run fuzz -- --seed ${seed} --only ${index}`)
  process.exit(1)
}
/** Twice what a run of 100000 takes: a server that uses more leaks memory. */
const mostMegabytes = 1536
const megabytes = Math.round(process.memoryUsage().rss / 2 ** 20)
say(`${result.sent} requests, each with a well-formed response, in ${seconds} s, ${megabytes} MiB`)
if (megabytes > mostMegabytes) {
  say(`more than ${mostMegabytes} MiB: something grows`)
  process.exit(1)
}

function readIndex(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It must be a whole number.')
}
