/**
 * `npm run citus -- SOURCE`: builds Citus from its source, or takes the programs of a PostgreSQL that has it, and runs a
 * coordinator with two workers until it is interrupted. `npm run test:citus -- SOURCE` tests the same ones.
 */
import { scriptCommand } from '../command.ts'
import { ProgramsMissing, unavailable } from '../debian/packages.ts'
import { startCitus } from './cluster.ts'

const command = scriptCommand(
  'citus',
  'Runs a coordinator of Citus with two workers on 127.0.0.1, in a temporary folder, with one empty database.',
)
  .argument('<source>', 'the folder with the source of Citus, or the bin folder of a PostgreSQL that has it')
  .option('--port <port>', 'the port of the coordinator; otherwise a free one')
  .parse()
const [source = ''] = command.args
const { port } = command.opts<{ port?: string }>()
const ends: (() => unknown)[] = []
const end = async (code: number) => {
  for (const one of ends.splice(0).reverse()) await one()
  process.exit(code)
}
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void end(0))
try {
  const owner = { teardown: (one: () => unknown) => void ends.push(one) }
  const citus = await startCitus(owner, source, port === undefined ? {} : { coordinatorPort: Number(port) })
  process.stdout.write(`ready: ${await citus.createDatabase()}\n`)
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`)
  await end(error instanceof ProgramsMissing ? unavailable : 1)
}
