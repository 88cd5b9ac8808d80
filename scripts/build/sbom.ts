/** The software bill of materials, in the form of CycloneDX 1.6: what package-lock.json installs for a server. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { isoInstant } from '../../src/system/system.ts'
import { root } from './bundle.ts'
import { buildInstant, commit, version } from './origin.ts'

/** A package as a component: where it comes from, and its licence if that is known. */
export interface Component {
  readonly type: 'library' | 'application' | 'operating-system'
  readonly name: string
  readonly version: string
  readonly purl: string
  readonly licenses?: readonly { readonly expression: string }[]
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[]
}

interface Locked {
  readonly version: string
  readonly license?: string
  readonly integrity?: string
  readonly dev?: true
  readonly optional?: true
  readonly devOptional?: true
}

/** Returns the document as text; `more` are the components that the lockfile does not have. */
export function billOfMaterials(more: readonly Component[] = []): string {
  const components = [...lockedComponents(), node(), ...more]
  const digest = createHash('sha256')
    .update(JSON.stringify([commit(), components]))
    .digest('hex')
  const document = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    // As two builds of a commit have the same components, they have the same number.
    serialNumber: `urn:uuid:${digest.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-8$3-8$4-$5')}`,
    version: 1,
    metadata: {
      timestamp: isoInstant(buildInstant()),
      component: {
        type: 'application',
        name: 'lychgate',
        version,
        purl: `pkg:npm/lychgate@${version}`,
        licenses: [{ expression: 'Apache-2.0' }],
        properties: [{ name: 'commit', value: commit() }],
      },
    },
    components: components.map((one) => ({ 'bom-ref': one.purl, ...one })),
  }
  return `${JSON.stringify(document, null, 2)}\n`
}

function lockedComponents(): readonly Component[] {
  const { packages }: { packages: Record<string, Locked> } = JSON.parse(
    readFileSync(`${root}package-lock.json`, 'utf8'),
  )
  const found = Object.entries(packages).flatMap(([path, { dev, optional, devOptional, ...locked }]) => {
    const name = path.split('node_modules/').at(-1)
    // The optional ones are the Node of each platform, which is a component of its own.
    if (!name || dev || optional || devOptional) return []
    const purl = `pkg:npm/${name.replace('@', '%40')}@${locked.version}`
    const [, algorithm = '', base64 = ''] = /^sha(\d+)-(.*)$/.exec(locked.integrity ?? '') ?? []
    const component: Component = {
      type: 'library',
      name,
      version: locked.version,
      purl,
      ...(locked.license !== undefined && { licenses: [{ expression: locked.license }] }),
      ...(algorithm !== '' && {
        hashes: [{ alg: `SHA-${algorithm}`, content: Buffer.from(base64, 'base64').toString('hex') }],
      }),
    }
    return [[purl, component] as const]
  })
  return [...new Map(found).values()]
}

function node(): Component {
  const { versions } = process
  return {
    type: 'application',
    name: 'node',
    version: versions.node,
    purl: `pkg:generic/node@${versions.node}`,
    licenses: [{ expression: 'MIT' }],
  }
}
