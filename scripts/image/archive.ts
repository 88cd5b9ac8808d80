/**
 * An OCI image layout in one archive, which also has the index that `docker load` reads. Nothing in it depends on the machine
 * or the time: names are sorted, owners are numbers, and every file has the time of the commit.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  createReadStream,
  createWriteStream,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'

/** A folder whose content is one layer, and who owns it there. */
export interface Layer {
  readonly folder: string
  /** What of the folder: `.` is all of it. */
  readonly path: string
  /** What the history of the image calls it. */
  readonly title?: string
  readonly owner?: string
  readonly mode?: string
}

export interface ImageConfig {
  readonly created: string
  readonly architecture: string
  readonly config: { readonly Labels: Readonly<Record<string, string>> } & Readonly<Record<string, unknown>>
}

interface Descriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
}

const types = 'application/vnd.oci.image'

/** Writes the archive; every file of it has the time `instant`, in seconds. */
export async function writeArchive(
  file: string,
  layers: readonly Layer[],
  { created, architecture, config }: ImageConfig,
  instant: number,
): Promise<void> {
  const work = `${file}.layout`
  rmSync(work, { recursive: true, force: true })
  const blobs = join(work, 'blobs/sha256')
  mkdirSync(blobs, { recursive: true })
  const made = []
  for (const layer of layers) made.push(await writeLayer(blobs, layer, instant))
  const rootfs = { type: 'layers', diff_ids: made.map(({ diffId }) => diffId) }
  const history = layers.map(({ title }) => ({ created, created_by: `npm run image: ${title}` }))
  const image = { created, architecture, os: 'linux', config, rootfs, history }
  const configuration = writeBlob(blobs, `${types}.config.v1+json`, image)
  const manifest = writeBlob(blobs, `${types}.manifest.v1+json`, {
    schemaVersion: 2,
    mediaType: `${types}.manifest.v1+json`,
    config: configuration,
    layers: made.map(({ descriptor }) => descriptor),
    annotations: config.Labels,
  })
  const version = config.Labels['org.opencontainers.image.version'] ?? 'latest'
  const names = [`lychgate:${version}`, 'lychgate:latest']
  const annotations = { 'org.opencontainers.image.ref.name': version }
  const platform = { architecture, os: 'linux' }
  writeJson(work, 'oci-layout', { imageLayoutVersion: '1.0.0' })
  writeJson(work, 'index.json', { schemaVersion: 2, manifests: [{ ...manifest, annotations, platform }] })
  const pathOf = ({ digest }: Descriptor) => `blobs/${digest.replace(':', '/')}`
  const loaded = made.map(({ descriptor }) => pathOf(descriptor))
  writeJson(work, 'manifest.json', [{ Config: pathOf(configuration), RepoTags: names, Layers: loaded }])
  tar(file, { folder: work, path: '.' }, instant)
  rmSync(work, { recursive: true })
}

async function writeLayer(blobs: string, layer: Layer, instant: number) {
  const [plain, packed] = [join(blobs, 'plain'), join(blobs, 'packed')]
  tar(plain, layer, instant)
  const diffId = await digestOf(plain)
  await pipeline(createReadStream(plain), createGzip({ level: 9 }), createWriteStream(packed))
  rmSync(plain)
  const digest = await digestOf(packed)
  const size = statSync(packed).size
  renameSync(packed, join(blobs, digest.replace('sha256:', '')))
  return { diffId, descriptor: { mediaType: `${types}.layer.v1.tar+gzip`, digest, size } }
}

async function digestOf(file: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(file), hash)
  return `sha256:${hash.digest('hex')}`
}

function writeBlob(blobs: string, mediaType: string, content: unknown): Descriptor {
  const text = JSON.stringify(content)
  const digest = createHash('sha256').update(text).digest('hex')
  writeFileSync(join(blobs, digest), text)
  return { mediaType, digest: `sha256:${digest}`, size: Buffer.byteLength(text) }
}

function writeJson(folder: string, name: string, content: unknown): void {
  writeFileSync(join(folder, name), JSON.stringify(content))
}

/** Writes a tar file that is the same for the same content, whatever the umask was. */
export function tar(
  file: string,
  { folder, path, owner = '0:0', mode = 'u=rwX,go=rX' }: Layer,
  instant: number,
): void {
  const [user, group] = owner.split(':')
  const options = ['--format=gnu', '--sort=name', `--mtime=@${instant}`, '--numeric-owner', `--mode=${mode}`]
  const ids = [`--owner=${user}`, `--group=${group}`]
  const args = [...options, ...ids, '--create', `--file=${file}`, `--directory=${folder}`, path]
  const { status, stderr } = spawnSync('tar', args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`tar: ${stderr}`)
}
