/** Who made what from what: an in-toto statement with the provenance of SLSA 1.0. */
import { execFileSync } from 'node:child_process'
import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { commit, version } from '../build/origin.ts'

const payloadType = 'application/vnd.in-toto+json'

/** Returns the digest of a file, in hexadecimal. */
export function sha256(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex')
}

/** Returns the statement about these files. */
export function statement(files: readonly string[]): object {
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: files.map((file) => ({ name: basename(file), digest: { sha256: sha256(file) } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'https://lychgate.invalid/npm-run-release/v1',
        externalParameters: { command: 'npm run release', version },
        internalParameters: { node: process.version, platform: `${process.platform}-${process.arch}` },
        resolvedDependencies: [{ name: 'lychgate', digest: { gitCommit: commit() } }],
      },
      runDetails: {
        builder: { id: 'https://lychgate.invalid/a-releaser' },
      },
    },
  }
}

/**
 * Puts a statement into an envelope (DSSE 1.0), signed with an Ed25519 or ECDSA key of the releaser. Without a key it has
 * no signature, and says `unsigned`.
 */
export function envelope(content: object, keyFile: string | undefined): object {
  const payload = Buffer.from(JSON.stringify(content))
  const enclosed = { payloadType, payload: payload.toString('base64') }
  if (keyFile === undefined) return { ...enclosed, signatures: [], unsigned: true }
  const key = createPrivateKey(readFileSync(keyFile))
  const spki = createPublicKey(key).export({ type: 'spki', format: 'der' })
  const signature = sign(digestOf(key), signedBytes(payload), key)
  const keyid = createHash('sha256').update(spki).digest('hex')
  return { ...enclosed, signatures: [{ keyid, sig: signature.toString('base64') }] }
}

/** What a signed statement is about. */
export interface VerifiedStatement {
  readonly subject: readonly { readonly name: string; readonly digest: { readonly sha256: string } }[]
  readonly commit: string
}

/**
 * Returns the statement of an envelope that this key has signed.
 * @throws if it has not
 */
export function verifiedStatement(
  enclosed: {
    readonly payloadType: string
    readonly payload: string
    readonly signatures: readonly { readonly sig: string }[]
  },
  key: KeyObject,
): VerifiedStatement {
  if (enclosed.signatures.length === 0) throw new Error('the provenance is unsigned')
  const payload = Buffer.from(enclosed.payload, 'base64')
  const isSigned = enclosed.signatures.some(({ sig }) =>
    verify(digestOf(key), signedBytes(payload), key, Buffer.from(sig, 'base64')),
  )
  if (!isSigned || enclosed.payloadType !== payloadType)
    throw new Error('the provenance is not signed by this key')
  const { subject, predicate } = JSON.parse(payload.toString())
  return { subject, commit: predicate.buildDefinition.resolvedDependencies[0].digest.gitCommit }
}

function digestOf(key: KeyObject): string | null {
  return key.asymmetricKeyType === 'ed25519' ? null : 'sha256'
}

/** DSSE 1.0: the type and the length of each part are signed with it. */
function signedBytes(payload: Buffer): Buffer {
  return Buffer.concat([
    Buffer.from(`DSSEv1 ${payloadType.length} ${payloadType} ${payload.length} `),
    payload,
  ])
}

/** Lists the commits since the last tag of a release, without merges. */
export function changes(): string {
  const git = (...args: string[]) => execFileSync('git', args, { encoding: 'utf8' }).trim()
  const tags = git('tag', '--list', 'v*', '--sort=-creatordate', '--merged', 'HEAD')
    .split('\n')
    .filter((tag) => tag !== '' && tag !== `v${version}`)
  const range = tags[0] === undefined ? 'HEAD' : `${tags[0]}..HEAD`
  return `Lychgate ${version} (${commit()})\n\n${git('log', '--no-merges', '--format=- %s', range)}\n`
}
