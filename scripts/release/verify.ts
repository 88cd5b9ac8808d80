/** `npm run release:verify -- --key releaser.pub.pem FOLDER` checks files of a release that someone else made. */
import { createPublicKey } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { scriptCommand } from '../command.ts'
import { sha256, verifiedStatement } from './provenance.ts'

const command = scriptCommand(
  'release:verify',
  'Checks that the holder of a key made these files, from which commit.',
)
  .requiredOption('--key <file>', 'the public key of the releaser, PEM')
  .argument('[folder]', 'with the files and their .intoto.json', 'dist/release')
  .parse()
const { key } = command.opts<{ key: string }>()
const folder = command.processedArgs[0] as string
try {
  const [name] = globSync('*.intoto.json', { cwd: folder })
  if (name === undefined) throw new Error(`${folder} has no .intoto.json`)
  const enclosed = JSON.parse(readFileSync(join(folder, name), 'utf8'))
  const { subject, commit } = verifiedStatement(enclosed, createPublicKey(readFileSync(key)))
  const digests = new Map(subject.map(({ name, digest }) => [name, digest.sha256]))
  const files = globSync('*', { cwd: folder }).filter((file) => file !== name && file !== 'SHA256SUMS')
  const wrong = files.filter((file) => digests.get(file) !== sha256(join(folder, file)))
  if (wrong.length > 0) throw new Error(`not as they were released: ${wrong.join(', ')}`)
  process.stdout.write(`${files.length} files are as released, made from commit ${commit}\n`)
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`)
  process.exitCode = 1
}
