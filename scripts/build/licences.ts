import { readdirSync, readFileSync } from 'node:fs'
import type { Metafile } from 'esbuild'
import { root } from './bundle.ts'

/** The licence of every package whose code is in a bundle, as each of them requires of copies. */
export function licencesOf(...metafiles: readonly Metafile[]): string {
  const paths = metafiles.flatMap(({ inputs }) => Object.keys(inputs))
  const packages = paths.flatMap((path) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? [])
  return [...new Set(packages)].sort().map(chapter).join('\n')
}

function chapter(folder: string): string {
  const { name, version, license, homepage } = JSON.parse(
    readFileSync(`${root}${folder}/package.json`, 'utf8'),
  )
  const files = readdirSync(`${root}${folder}`).filter((file) => /^(licen[cs]e|notice)(\.|-|$)/i.test(file))
  const texts = files.sort().map((file) => readFileSync(`${root}${folder}/${file}`, 'utf8').trim())
  const said =
    texts.length > 0 ? texts.join('\n\n') : `It comes without a copy of its licence. ${homepage ?? ''}`
  return `${'='.repeat(80)}\n${name} ${version} (${license})\n\n${said}\n`
}
