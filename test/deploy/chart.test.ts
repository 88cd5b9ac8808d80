/** The chart for Kubernetes, by the manifests made from it. `npm run test:chart` renders and validates it with helm. */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parse, parseAllDocuments } from 'yaml'
import { chartDigest, manifests } from '../../scripts/chart/manifests.ts'
import { imageConfig } from '../../scripts/image/config.ts'
import { loadConfig } from '../../src/settings/load.ts'
import { version } from '../../src/system/version.ts'

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const packageVersion: string = JSON.parse(read('package.json')).version

/** The objects of a manifest, by their kind: one of each. */
function objectsOf(name: string) {
  const documents = parseAllDocuments(read(`deploy/kubernetes/${name}.yaml`)).map((one) => one.toJS())
  const objects = Object.fromEntries(documents.filter(Boolean).map((one) => [one.kind, one]))
  const { template } = objects['Deployment'].spec
  return { objects, deployment: objects['Deployment'].spec, pod: template.spec, template }
}

t.test(
  'the chart has the version of the server, and the last result of its check is of this chart',
  async (t) => {
    const { version: chart, appVersion } = parse(read('deploy/helm/lychgate/Chart.yaml'))
    t.strictSame([chart, appVersion], [packageVersion, packageVersion])
    t.match(version(), packageVersion)
    const results = JSON.parse(read('test/deploy/chart-results.json'))
    t.equal(results.chart, chartDigest(), 'npm run test:chart, and commit test/deploy/chart-results.json')
    const sets = globSync('deploy/helm/values/*.yaml').map((path) => path.replace(/^.*\/|\.yaml$/g, ''))
    t.strictSame(Object.keys(results.objects), sets.sort())
    t.ok(sets.length >= 6)
  },
)

t.test('every value has a default, and the schema knows it', async (t) => {
  const { properties, additionalProperties } = JSON.parse(read('deploy/helm/lychgate/values.schema.json'))
  t.equal(additionalProperties, false)
  const values = parse(read('deploy/helm/lychgate/values.yaml'))
  t.strictSame([...Object.keys(values), 'global'].sort(), Object.keys(properties).sort())
  t.notMatch(read('deploy/helm/lychgate/values.yaml'), /lyc_|postgres:\/\/(?!user:password@host)/)
})

for (const name of manifests) {
  t.test(`${name}: the pod is confined as the standard "restricted" wants it`, async (t) => {
    const { pod } = objectsOf(name)
    t.match(pod.securityContext, { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
    const { User } = imageConfig('')
    t.equal(
      `${pod.securityContext.runAsUser}:${pod.securityContext.runAsGroup}`,
      User,
      'the user of the image',
    )
    t.equal(pod.automountServiceAccountToken, false)
    t.equal(pod.enableServiceLinks, false, 'no variable LYCHGATE_PORT=tcp://…')
    const [{ securityContext }] = pod.containers
    t.strictSame(securityContext, {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
  })

  t.test(
    `${name}: the server accepts its variables and its configuration, and the probes ask it`,
    async (t) => {
      const { objects, pod, template } = objectsOf(name)
      const [{ env, ports, startupProbe, readinessProbe, livenessProbe, volumeMounts }] = pod.containers
      const config = loadInPod(t, name)
      t.match(config, { issuer: 'https://auth.example.org', builtInApi: 'off' })
      t.ok(env.every(({ value }: { value: string }) => typeof value === 'string'))
      t.strictSame(
        volumeMounts.map(({ mountPath }: { mountPath: string }) => mountPath),
        ['/etc/lychgate', '/run/secrets/lychgate', '/data'],
      )
      for (const probe of [startupProbe, readinessProbe])
        t.match(probe.httpGet, { path: '/readyz', port: 'http' })
      t.match(livenessProbe.httpGet, { path: '/livez', port: 'http' })
      t.strictSame(ports, [{ name: 'http', containerPort: 9400 }])
      const { selector, ports: published } = objects['Service'].spec
      t.match(template.metadata.labels, selector, 'the service finds the pod')
      t.match(published, [{ port: 80, targetPort: 'http' }])
      t.match(template.metadata.labels, objects['NetworkPolicy'].spec.podSelector.matchLabels)
    },
  )
}

t.test('SQLite has one writer at a time, PostgreSQL two servers that are replaced one by one', async (t) => {
  const [sqlite, postgres] = [objectsOf('sqlite'), objectsOf('postgres')]
  t.match(sqlite.deployment, { replicas: 1, strategy: { type: 'Recreate' } })
  t.match(sqlite.objects['PersistentVolumeClaim'].spec, { accessModes: ['ReadWriteOncePod'] })
  t.notOk('PodDisruptionBudget' in sqlite.objects)
  t.match(postgres.deployment, { replicas: 2, strategy: { type: 'RollingUpdate' } })
  t.match(postgres.objects['PodDisruptionBudget'].spec, { maxUnavailable: 1 })
  t.equal(postgres.pod.topologySpreadConstraints.length, 2)
  t.match(loadInPod(t, 'postgres'), { store: 'postgres://user@host/database' })
  const job = read('deploy/helm/lychgate/templates/migration.yaml')
  t.match(job, /^\{\{- if and .*lychgate\.isPostgres/, 'with PostgreSQL only')
  t.match(job, /^ {4}helm\.sh\/hook: pre-upgrade$/m)
})

/** The configuration that the server reads in the pod: mounted files are written to a folder. */
function loadInPod(t: Test, name: string) {
  const { objects, pod } = objectsOf(name)
  const folder = t.testdir({
    ...objects['ConfigMap'].data,
    secret: 's'.repeat(44),
    store: 'postgres://user@host/database',
  })
  const variables = pod.containers[0].env.map(({ name, value }: { name: string; value: string }) => {
    const mounted = /^\/(?:etc|run\/secrets)\/lychgate\/(.*)$/.exec(value)?.[1]
    return [name, mounted === undefined ? value : join(folder, mounted)]
  })
  for (const [, value] of variables.filter(([, value]: string[]) => value?.startsWith('/')))
    t.ok(existsSync(value), value)
  return loadConfig({ mode: 'serve', environment: Object.fromEntries(variables) })
}
