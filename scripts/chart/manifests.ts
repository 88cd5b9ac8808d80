/**
 * Writes deploy/kubernetes, plain manifests for those without helm, from the chart in deploy/helm. The first line of each
 * has the digest of the chart: `--check` finds one that is out of date without helm, and compares all of it with helm.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../build/bundle.ts'

const chart = `${root}deploy/helm`
/** The version for which charts are rendered: what is rendered does not depend on it. */
export const kubernetesVersion = '1.34'

/** The sets of values of deploy/helm/values that are manifests, too. */
export const manifests = ['sqlite', 'postgres']

/** Returns the digest of everything that a manifest is made of. */
export function chartDigest(): string {
  const hash = createHash('sha256')
  const files = globSync('**/*', { cwd: chart, withFileTypes: true }).filter((entry) => entry.isFile())
  const paths = files.map(({ parentPath, name }) => join(parentPath, name).slice(chart.length + 1)).sort()
  for (const path of paths)
    hash
      .update(`${path}\n`)
      .update(readFileSync(join(chart, path)))
      .update('\n')
  return hash.digest('hex')
}

/** Returns the path of helm, or undefined where there is none: HELM names it, or PATH has it. */
export function findHelm(): string | undefined {
  const named = process.env['HELM'] ?? 'helm'
  return spawnSync(named, ['version']).status === 0 ? named : undefined
}

/** Renders the chart with a set of values. */
export function render(helm: string, values: string, ...more: readonly string[]): string {
  const options = ['--kube-version', kubernetesVersion, '--values', `${chart}/values/${values}.yaml`, ...more]
  const { status, stdout, stderr } = spawnSync(
    helm,
    ['template', 'lychgate', `${chart}/lychgate`, ...options],
    {
      encoding: 'utf8',
    },
  )
  if (status !== 0) throw new Error(stderr)
  return stdout
}

/** A manifest is not installed by helm, and has nothing that helm would run. */
function manifestOf(helm: string, values: string): string {
  const lines = render(helm, values, '--no-hooks')
    .split('\n')
    .filter((line) => !/managed-by: Helm|^# Source: /.test(line))
    .map((line) => line.trimEnd())
  return `${headOf(values)}${lines.join('\n')}`
}

function headOf(values: string): string {
  return `# Generated from deploy/helm of ${chartDigest()}: npm run generate -- kubernetes
# Set the image and the issuer to yours, and make the Secret that is named below: docs/kubernetes.md. The values are
# deploy/helm/values/${values}.yaml.
`
}

function main(): void {
  const helm = findHelm()
  const fileOf = (values: string) => `${root}deploy/kubernetes/${values}.yaml`
  if (process.argv.includes('--check')) {
    const stale = manifests.filter((values) => {
      const text = readFileSync(fileOf(values), 'utf8')
      return helm === undefined ? !text.startsWith(headOf(values)) : text !== manifestOf(helm, values)
    })
    if (stale.length === 0) return
    process.stderr.write(
      `deploy/kubernetes: out of date: ${stale.join(', ')}; npm run generate -- kubernetes\n`,
    )
    process.exitCode = 1
    return
  }
  if (helm === undefined) throw new Error('helm: not on this machine; npm run test:chart says how to get it')
  mkdirSync(`${root}deploy/kubernetes`, { recursive: true })
  for (const values of manifests) writeFileSync(fileOf(values), manifestOf(helm, values))
}

if (import.meta.main) main()
