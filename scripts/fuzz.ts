/** `npm run fuzz`: generated requests, and the first answer that breaks a rule. See test/fuzz/run.ts. */
import { parseArgs } from 'node:util'
import { requestsPerWorld, runFuzz } from '../test/fuzz/run.ts'

const usage = `npm run fuzz -- [--seed N] [--requests N] [--only INDEX]

Sends generated requests to every endpoint of servers in this process, over real connections.
  --seed N      the same requests again; drawn by lot when left out
  --requests N  how many, 100000 when left out
  --only INDEX  repeats one request, with the ${requestsPerWorld - 1} at most that it builds upon, and prints it
`
const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    requests: { type: 'string', default: '100000' },
    only: { type: 'string' },
    help: { type: 'boolean' },
  },
})
const seed = wholeNumber('seed', values.seed) ?? Math.floor(Math.random() * 2 ** 31)
const only = wholeNumber('only', values.only)
const requests = only === undefined ? (wholeNumber('requests', values.requests) ?? 0) : only + 1
if (values.help) {
  process.stdout.write(usage)
  process.exit(0)
}

const started = performance.now()
const say = (line: string) => process.stdout.write(`${line}\n`)
say(`seed ${seed}, ${requests} requests`)
const result = await runFuzz({
  seed,
  requests,
  ...(only !== undefined && { only }),
  observe: (index, sent, answers) => {
    if (index === only) say(JSON.stringify({ ...sent, body: sent.body.toString('latin1'), answers }, null, 2))
  },
})
const seconds = Math.round((performance.now() - started) / 1000)
if (only === undefined) {
  for (const [what, count] of [...result.statuses].sort()) say(`${String(count).padStart(7)} ${what}`)
}
if (result.finding) {
  const { index, fault, curl, answer } = result.finding
  say(`\nrequest ${index} of seed ${seed}: ${fault}\n\n${curl}\n\n${answer}\n`)
  say(`Repeat it: npm run fuzz -- --seed ${seed} --only ${index}`)
  process.exit(1)
}
/** Twice what a run of 100000 takes: more is a server that keeps what it should not. */
const mostMegabytes = 1536
const megabytes = Math.round(process.memoryUsage().rss / 2 ** 20)
say(`${result.sent} requests answered in form in ${seconds} s, ${megabytes} MiB`)
if (megabytes > mostMegabytes) {
  say(`more than ${mostMegabytes} MiB: something grows`)
  process.exit(1)
}

function wholeNumber(name: string, text: string | undefined): number | undefined {
  if (text === undefined || /^\d{1,15}$/.test(text)) return text === undefined ? undefined : Number(text)
  process.stderr.write(`fuzz: --${name} must be a whole number\n`)
  process.exit(64)
}
