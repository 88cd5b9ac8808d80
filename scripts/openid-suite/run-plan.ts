import { isObject } from '../../src/domain/is-object.ts'
import type { Plan } from './plans.ts'

/** How a module ended. */
export interface ModuleResult {
  readonly module: string
  /** PASSED, WARNING, REVIEW, SKIPPED, FAILED, INTERRUPTED or UNKNOWN. */
  readonly result: string
  readonly seconds: number
  /** What failed and warned, why it was skipped, and what this script noticed. */
  readonly remarks: readonly string[]
}

export interface Module {
  readonly testModule: string
  readonly variant?: Readonly<Record<string, string>>
}

export interface Drive {
  readonly api: string
  /** The longest time for a module. */
  readonly seconds: number
  /** Does what the suite's own browser cannot do, when a module is first in this state; returns a remark. */
  readonly assist: (state: 'CONFIGURED' | 'WAITING') => Promise<string | undefined>
  /** How long a module may wait for a page that no browser opens. */
  readonly idleSeconds?: number
}

type Members = Readonly<Record<string, unknown>>

/** This module alone waits until someone has done something, and is started then. */
const startedByHand = 'oidcc-server-rotate-keys'

/** Makes a plan of a configuration. @throws {Error} with what the suite says against it. */
export async function makePlan(
  api: string,
  { id: planName, variant }: Pick<Plan, 'id' | 'variant'>,
  configuration: object,
): Promise<{ readonly id: string; readonly modules: readonly Module[] }> {
  const query = { planName, ...(variant && { variant: JSON.stringify(variant) }) }
  const made = await call(api, 'POST', 'plan', query, JSON.stringify(configuration))
  return { id: String(made?.['id']), modules: made?.['modules'] as readonly Module[] } // of the suite
}

/** Runs a module to its end, or to the end of the patience. */
export async function runModule(
  planId: string,
  { testModule: module, variant }: Module,
  { api, seconds, assist, idleSeconds = 20 }: Drive,
): Promise<ModuleResult> {
  const started = Date.now()
  const query = { test: module, plan: planId, ...(variant && { variant: JSON.stringify(variant) }) }
  const id = String((await call(api, 'POST', 'runner', query))?.['id'])
  const remarks: string[] = []
  const assisted = new Set<string>()
  let idleSince: number | undefined
  let info: Members = {}
  for (;;) {
    info = (await call(api, 'GET', `info/${id}`)) ?? info
    const { status } = info
    if (status === 'FINISHED' || status === 'INTERRUPTED') break
    const isOurs = status === 'WAITING' || (status === 'CONFIGURED' && module === startedByHand)
    if (isOurs && !assisted.has(status)) {
      assisted.add(status)
      const remark = await assist(status).catch((error: unknown) => String(error))
      if (remark !== undefined) remarks.push(remark)
      if (status === 'CONFIGURED') await call(api, 'POST', `runner/${id}`)
    }
    const isIdle = status === 'WAITING' && (await isAlone(api, id))
    idleSince = isIdle ? (idleSince ?? Date.now()) : undefined
    const isLost = idleSince !== undefined && Date.now() - idleSince > idleSeconds * 1000
    if (isLost || Date.now() - started > seconds * 1000) {
      remarks.push(`no end in state ${String(status)} after ${Math.round((Date.now() - started) / 1000)} s`)
      await call(api, 'DELETE', `runner/${id}`)
      await pause(2000)
      info = (await call(api, 'GET', `info/${id}`)) ?? info
      break
    }
    await pause(500)
  }
  // Its last entries are written after its state.
  await pause(300)
  info = (await call(api, 'GET', `info/${id}`)) ?? info
  const log = await entries(api, id)
  const isOver = info['status'] === 'FINISHED'
  return {
    module,
    result: isOver ? String(info['result'] ?? 'UNKNOWN') : 'INTERRUPTED',
    seconds: Math.round((Date.now() - started) / 1000),
    remarks: [...remarks, ...log.flatMap(remarkOf)],
  }
}

/** Whether a module waits for a page that no browser of the suite opens. Some wait for a minute to pass. */
async function isAlone(api: string, id: string): Promise<boolean> {
  const browser = await call(api, 'GET', `runner/browser/${id}`).catch(() => undefined)
  const lengthOf = (value: unknown) => (Array.isArray(value) ? value.length : 0)
  return lengthOf(browser?.['urls']) > 0 && lengthOf(browser?.['runners']) === 0
}

async function entries(api: string, id: string): Promise<readonly Members[]> {
  const log: unknown = await call(api, 'GET', `log/${id}`)
  return Array.isArray(log) ? log.filter(isObject) : []
}

/** What an entry of a log says, if it is about something other than a pass. */
function remarkOf(entry: Members): readonly string[] {
  const { result, src, msg, requirements, expected, actual, page_source: page } = entry
  const said = isObject(entry['body_json']) ? entry['body_json'] : entry
  const error = said['error'] === undefined ? '' : ` (${said['error']}: ${said['error_description'] ?? ''})`
  const values =
    expected === undefined ? '' : ` (expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)})`
  const clauses =
    Array.isArray(requirements) && requirements.length > 0 ? ` [${requirements.join(', ')}]` : ''
  if (['FAILURE', 'WARNING', 'INTERRUPTED', 'SKIPPED'].includes(String(result)))
    return [oneLine(`${result}: ${src}: ${msg ?? ''}${error}${values}${clauses}`)]
  if (typeof page !== 'string') return []
  return [oneLine(`page asked for: ${msg}`), oneLine(`page: ${textOf(page)}`)]
}

/** The text of a page, with its pictures and links. */
function textOf(page: string): string {
  const main = /<main[^>]*>(.*)<\/main>/s.exec(page)?.[1] ?? page
  return main
    .replaceAll(/<img[^>]*\ssrc="([^"]*)"[^>]*>/g, ' (picture $1) ')
    .replaceAll(/<a[^>]*\shref="(https?:[^"]*)"[^>]*>/g, ' (link $1) ')
    .replaceAll(/<[^>]*>/g, ' ')
}

const oneLine = (text: string) => text.replaceAll(/\s+/g, ' ').trim().slice(0, 500)

const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds))

/** One request to the API; undefined for what is not there. @throws {Error} for any other failure. */
async function call(
  api: string,
  method: string,
  path: string,
  query: Readonly<Record<string, string>> = {},
  body?: string,
): Promise<Members | undefined> {
  const url = `${api}${path}?${new URLSearchParams(query)}`
  // The suite wants the type also of a request without content.
  const headers = { 'content-type': 'application/json', accept: 'application/json' }
  const response = await fetch(url, { method, headers, ...(body !== undefined && { body }) })
  const text = await response.text()
  if (response.status === 404) return undefined
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text.slice(0, 400)}`)
  return text === '' ? undefined : (JSON.parse(text) as Members) // of the suite
}
