/**
 * The chart, linted and rendered by helm with each set of values; what it renders is validated with the schemas of
 * Kubernetes, and with the types of the projects whose kinds Kubernetes does not have. helm is built by go, which takes
 * minutes, so this is no step of `.ci/run`: it writes its result to test/deploy/chart-results.json, and a test compares
 * the digest in it with the chart.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { root } from '../build/bundle.ts'
import { chartDigest, findHelm, kubernetesVersion, render } from './manifests.ts'

const helmModule = 'helm.sh/helm/v3/cmd/helm@v3.22.0'
const validator = 'kubernetes-validate==1.37.0'
const versions = ['1.30', kubernetesVersion, '1.37']

/** What the schema of the values has to reject, and the member that helm names. */
const rejected: Readonly<Record<string, string>> = {
  'issuer=http://auth.example.org': 'issuer',
  'issuer=https://auth.example.org/': 'issuer',
  'store.kind=mysql': 'kind',
  'replica=2': 'replica',
  'env.LYCHGATE_SECRET=an-open-secret': 'LYCHGATE_SECRET',
  'config.secret=an-open-secret': 'secret',
  'gateway.enabled=true': 'parentRefs',
}

const work = mkdtempSync(join(tmpdir(), 'lychgate-chart-'))
try {
  check()
} finally {
  spawnSync('chmod', ['-R', 'u+w', work])
  rmSync(work, { recursive: true, force: true })
}

function check(): void {
  const helm = findHelm() ?? goInstall()
  const kinds = join(work, 'kinds')
  run('go', ['build', '-o', kinds, '.'], `${root}scripts/chart/go`)
  run('python3', ['-m', 'venv', join(work, 'python')])
  run(join(work, 'python/bin/pip'), ['install', '--quiet', '--disable-pip-version-check', validator])
  const sets = globSync('*.yaml', { cwd: `${root}deploy/helm/values` })
    .map((name) => basename(name, '.yaml'))
    .sort()
  const objects = Object.fromEntries(sets.map((values) => [values, validate(helm, kinds, values)]))
  for (const [setting, member] of Object.entries(rejected)) assertRejected(helm, setting, member)
  const record = {
    date: new Date().toISOString().slice(0, 10),
    chart: chartDigest(),
    helm: run(helm, ['version', '--template', '{{.Version}}']),
    'kubernetes-validate': validator.split('==')[1],
    kubernetes: versions.join(', '),
    objects,
    rejectedValues: Object.keys(rejected),
  }
  writeFileSync(`${root}test/deploy/chart-results.json`, `${JSON.stringify(record, null, 2)}\n`)
  process.stdout.write(
    `${sets.length} sets of values are valid, ${Object.keys(rejected).length} values are rejected\n`,
  )
}

function goInstall(): string {
  run('go', ['install', helmModule], root, { GOBIN: work })
  return join(work, 'helm')
}

/** Returns the kinds that a set of values renders, each with the number of its objects. */
function validate(helm: string, kinds: string, values: string): Readonly<Record<string, number>> {
  const chart = [`${root}deploy/helm/lychgate`, '--kube-version', kubernetesVersion]
  run(helm, ['lint', '--strict', ...chart, '--values', `${root}deploy/helm/values/${values}.yaml`])
  const manifest = render(helm, values, '--is-upgrade')
  const file = join(work, `${values}.yaml`)
  writeFileSync(file, manifest)
  const found = [...manifest.matchAll(/^kind: (\w+)$/gm)].map(([, kind = '']) => kind)
  const foreign = found.filter((kind) => ['HTTPRoute', 'ServiceMonitor'].includes(kind))
  for (const version of versions) {
    const program = join(work, 'python/bin/kubernetes-validate')
    const { status, stdout, stderr } = spawnSync(program, ['-k', version, '--strict', file], {
      encoding: 'utf8',
    })
    const passed = `${stdout}${stderr}`.split('\n').filter((line) => line.includes(' passed for resource '))
    if (status !== 0 || passed.length + foreign.length !== found.length)
      throw new Error(`${values}, Kubernetes ${version}: ${stdout}${stderr}`)
  }
  const { status, stdout, stderr } = spawnSync(kinds, { input: manifest, encoding: 'utf8' })
  const valid = stdout.split('\n').filter((line) => line.endsWith(': valid'))
  if (status !== 0 || valid.length !== foreign.length) throw new Error(`${values}: ${stdout}${stderr}`)
  return Object.fromEntries(found.sort().map((kind) => [kind, found.filter((one) => one === kind).length]))
}

function assertRejected(helm: string, setting: string, member: string): void {
  const values = `${root}deploy/helm/values/sqlite.yaml`
  const args = ['template', 'lychgate', `${root}deploy/helm/lychgate`, '--kube-version', kubernetesVersion]
  const { status, stderr } = spawnSync(helm, [...args, '--values', values, '--set', setting], {
    encoding: 'utf8',
  })
  if (status === 0 || !stderr.includes(member)) throw new Error(`${setting} is accepted: ${stderr}`)
}

function run(file: string, args: readonly string[], cwd = root, more: NodeJS.ProcessEnv = {}): string {
  return execFileSync(file, args, { cwd, env: { ...process.env, ...more }, encoding: 'utf8' }).trim()
}
