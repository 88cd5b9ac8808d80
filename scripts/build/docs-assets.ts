import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { docsAssets } from '../../src/dev/docs.ts'
import { root } from './bundle.ts'

const source = 'node_modules/@fastify/swagger-ui'

/** Writes the files of `/docs` into a folder, compressed to a quarter of their size. */
export function writeDocsAssets(folder: string): void {
  mkdirSync(folder, { recursive: true })
  for (const name of docsAssets)
    writeFileSync(
      `${folder}/${name}.gz`,
      gzipSync(readFileSync(`${root}${source}/static/${name}`), { level: 9 }),
    )
}

/** The licences of those files: of their package, and of the code copied into it. */
export function docsLicences(): string {
  const own = readFileSync(`${root}${source}/LICENSE`, 'utf8').trim()
  const copied = readFileSync(`${root}scripts/build/swagger-ui-licences.txt`, 'utf8').trim()
  return `${'='.repeat(80)}\n@fastify/swagger-ui, with the files of Swagger UI (MIT, Apache-2.0)\n\n${own}\n\n${copied}\n`
}
