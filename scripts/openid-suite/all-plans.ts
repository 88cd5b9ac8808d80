import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { configurationOf } from './configuration.ts'
import { type Plan, plansOf } from './plans.ts'
import { isUnexpected, type PlanResult } from './results.ts'
import { type Module, type ModuleResult, makePlan, runModule } from './run-plan.ts'
import { type Server, startServer, upstreamClient } from './server.ts'
import { beginSignIn, signInWith } from './sign-in.ts'
import type { Suite } from './suite.ts'

export interface Place {
  readonly suite: Suite
  /** For logs and configurations. */
  readonly folder: string
  /** The file with the certificate of both. */
  readonly certificate: string
  /** Of Lychgate, behind TLS. */
  readonly issuer: string
  /** Where Lychgate listens. */
  readonly port: number
  readonly say: (line: string) => void
}

/** The longest time for a module on a busy computer. */
const patienceSeconds = 240

/** Runs plans one after another; a server with an empty folder is started as often as their kinds differ. */
export async function runPlans(
  names: readonly string[],
  only: readonly string[],
  place: Place,
): Promise<readonly PlanResult[]> {
  const { suite, folder, certificate, issuer, port, say } = place
  const callbacks = `${suite.url}/test/a/lychgate`
  const plans = plansOf(callbacks).filter(({ name }) => names.length === 0 || names.includes(name))
  const modulesOf = new Map<Plan, readonly Module[]>()
  // The issuers are there before the server that is configured with them.
  for (const plan of plans) modulesOf.set(plan, (await makePlan(suite.api, plan, {})).modules)
  const upstreams = plans
    .filter(({ configuration }) => configuration === undefined)
    .flatMap((plan) =>
      (modulesOf.get(plan) ?? []).map(({ testModule }, index) => {
        const id = upstreamId(plan, index)
        const scope = testModule === endsWithKeys ? 'openid' : 'openid profile email'
        return { id, url: `${suite.url}/test/a/${id}/`, scope }
      }),
    )
  const results: PlanResult[] = []
  let running: { readonly kind: Plan['server']; readonly server: Server } | undefined
  try {
    for (const plan of plans) {
      const { server: kind } = plan
      if (running?.kind !== kind) {
        await running?.server.stop()
        const options = { kind, issuer, port, folder: join(folder, kind), callbacks, certificate }
        running = {
          kind,
          server: await startServer({ ...options, upstreams: kind === 'upstreams' ? upstreams : [] }),
        }
      }
      say(`\n${plan.name}: ${[plan.title, plan.note].filter((text) => text !== '').join(', ')}`)
      const modules = await runPlan(plan, modulesOf.get(plan) ?? [], only, running.server, place)
      results.push({ plan, modules })
    }
  } finally {
    await running?.server.stop()
  }
  return results
}

async function runPlan(
  plan: Plan,
  modules: readonly Module[],
  only: readonly string[],
  server: Server,
  { suite, folder, issuer, say }: Place,
): Promise<readonly ModuleResult[]> {
  await prepare(plan, server)
  const configuration =
    plan.configuration === undefined
      ? relyingParty(plan, modules, issuer)
      : configurationOf(plan.configuration, server.registered)
  writeFileSync(join(folder, `${plan.name}.json`), JSON.stringify(configuration, undefined, 2))
  const { id } = await makePlan(suite.api, plan, configuration)
  const results: ModuleResult[] = []
  for (const [index, module] of modules.entries()) {
    if (only.length > 0 && !only.includes(module.testModule)) continue
    const assist =
      plan.configuration === undefined ? signsIn(module, upstreamId(plan, index), issuer) : rotates(server)
    const result = await runModule(id, module, { api: suite.api, seconds: patienceSeconds, assist })
    results.push(result)
    const end = isUnexpected(plan, result) ? ' (unexpected)' : ''
    say(`${result.result.padEnd(11)} ${result.module}, ${result.seconds} s${end}`)
    for (const remark of result.remarks) say(`            ${remark}`)
  }
  return results
}

/** Runs the commands that a plan begins with. */
async function prepare({ before }: Plan, { registered, lychgate }: Server): Promise<void> {
  for (const name of before?.clients ?? []) {
    const id = registered.clients[name]?.id ?? ''
    for (const command of before?.commands ?? []) await lychgate('client', ...command(id))
  }
}

function rotates(server: Server) {
  return async (state: string): Promise<undefined> => {
    if (state === 'CONFIGURED') await server.rotateKeys()
  }
}

/** This server fetches the keys of an issuer at most once a minute. */
const keysAgainSeconds = 61
const rotation = 'oidcc-client-test-signing-key-rotation'
/** These modules have ended once the metadata, or the keys, were fetched, and fail at any further request. */
const endsWithMetadata = 'oidcc-client-test-discovery-openid-config'
const endsWithKeys = 'oidcc-client-test-discovery-jwks-uri-keys'

/** Signs in when a module of a Relying Party plan waits for that; a second time where it has rotated its keys since. */
function signsIn({ testModule }: Module, id: string, issuer: string) {
  return async (state: string): Promise<string | undefined> => {
    if (state !== 'WAITING') return undefined
    if (testModule === endsWithMetadata) {
      const { away } = await beginSignIn(id, issuer)
      return `Lychgate: ${away.at === 'redirect' ? 'sends the browser to the issuer' : 'rejected'}`
    }
    const first = await signInWith(id, issuer)
    if (testModule !== rotation) return `Lychgate: ${first}`
    await new Promise((resolve) => setTimeout(resolve, keysAgainSeconds * 1000))
    return `Lychgate: ${first}, then ${await signInWith(id, issuer)}`
  }
}

/** Each module of a Relying Party plan is an issuer of its own, because this server keeps metadata and keys. */
const upstreamId = (plan: Plan, index: number) => `${plan.name}-${index + 1}`

function relyingParty(plan: Plan, modules: readonly Module[], issuer: string): object {
  const override = modules.map(({ testModule }, index) => {
    const id = upstreamId(plan, index)
    const client = { ...upstreamClient, redirect_uri: `${issuer}/login/upstream/${id}/callback` }
    return [testModule, { alias: id, client }]
  })
  return { description: `Lychgate: ${plan.name}`, override: Object.fromEntries(override) }
}
