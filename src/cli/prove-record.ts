/** `lychgate prove --record`: describes the sign-in and consent pages of a server after a user has used them. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import type { Lab } from '../prove/lab.ts'
import { encode } from '../prove/params.ts'
import type { Recording } from '../prove/presets.ts'
import { CommandFailed } from './failure.ts'

/** What the user did on a page. Names and types of fields, and never what was typed. */
export type Action =
  | {
      readonly controls: readonly { readonly name: string; readonly type: string }[]
      readonly pressed?: Button
    }
  | { readonly link: string }

interface Button {
  readonly name: string
  readonly value: string
}

interface DevTools {
  readonly send: (method: string, params?: object) => Promise<Readonly<Record<string, unknown>>>
  readonly onEvent: (take: (method: string, params: Readonly<Record<string, unknown>>) => void) => void
  /** Rejects when the browser is closed, or when the time is up. */
  readonly ended: Promise<never>
}

const longestRecording = 600_000
const binding = 'lychgateRecord'
/** Runs in each page before its own scripts. */
const listener = `
addEventListener('submit', ({ target, submitter }) => {
  const controls = [...target.elements].map(({ name, type }) => ({ name, type }))
  const pressed = submitter?.name ? { name: submitter.name, value: submitter.value } : undefined
  ${binding}(JSON.stringify({ controls, pressed }))
}, true)
addEventListener('click', ({ target }) => {
  const link = target.closest?.('a[href]')?.href
  if (link) ${binding}(JSON.stringify({ link }))
}, true)`

/** Opens a browser in which the user approves a request and denies another, and describes the forms that were sent. */
export async function recordForms(program: string, lab: Lab, signal: AbortSignal): Promise<Recording> {
  const folder = mkdtempSync(join(tmpdir(), 'lychgate-record-'))
  const args = ['--remote-debugging-pipe', `--user-data-dir=${folder}`, '--no-first-run', 'about:blank']
  // A pipe: to a port other users of the machine could connect, and read what is typed.
  const browser = spawn(program, args, { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] })
  try {
    const ending = AbortSignal.any([signal, AbortSignal.timeout(longestRecording)])
    const tools = await openPage(browser, ending)
    process.stderr.write('In the browser, sign in and approve the request.\n')
    const approved = await actionsOf(tools, lab)
    process.stderr.write('Now deny the request.\n')
    const denied = await actionsOf(tools, lab)
    return recordingFrom(approved, denied)
  } finally {
    if (browser.pid !== undefined && browser.exitCode === null && browser.signalCode === null) {
      const exit = new Promise((resolve) => browser.once('exit', resolve))
      browser.kill('SIGKILL')
      await exit
    }
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** Sends a request in the browser, and returns what the user did until it came back to the client. */
async function actionsOf(tools: DevTools, lab: Lab): Promise<readonly Action[]> {
  const { params, client } = await lab.request({ prompt: 'consent' })
  const actions: Action[] = []
  const returned = new Promise<void>((resolve) => {
    tools.onEvent((method, { name, payload, request }) => {
      // `as`: of the listener above, and of the protocol.
      if (method === 'Runtime.bindingCalled' && name === binding) actions.push(JSON.parse(payload as string))
      const { url = '' } = (request ?? {}) as { readonly url?: string }
      if (method === 'Network.requestWillBeSent' && url.startsWith(`${client.redirectUri}?`)) resolve()
    })
  })
  const endpoint = lab.server.endpoint('authorization_endpoint')
  const sign = endpoint.includes('?') ? '&' : '?'
  await tools.send('Page.navigate', { url: endpoint + sign + encode(params) })
  await Promise.race([returned, tools.ended])
  return actions
}

/** Describes the forms of two requests, of which the user approved the first and denied the second. */
export function recordingFrom(approved: readonly Action[], denied: readonly Action[]): Recording {
  const forms = approved.filter((action) => 'controls' in action)
  const signIn = forms.find(({ controls }) => controls.some(({ type }) => type === 'password'))
  const password = signIn?.controls.find(({ type }) => type === 'password')?.name
  const username = signIn?.controls.find(({ type }) => /^(text|email|tel)$/.test(type))?.name
  if (signIn === undefined || !password || !username)
    throw new CommandFailed(
      'no form with a user name and a password was sent: such a sign-in cannot be recorded',
    )
  const consent = forms.filter((form) => form !== signIn).at(-1)
  // The button tells this form from others; without its name, a hidden field does.
  const has =
    consent?.pressed?.name ?? consent?.controls.find(({ type, name }) => type === 'hidden' && name)?.name
  if (consent === undefined || has === undefined)
    throw new CommandFailed(
      'no form was sent to approve the request: --username and --password-file are enough',
    )
  const deny = denialOf(denied.at(-1))
  return {
    name: 'recorded',
    signIn: { username, password, ...(signIn.pressed !== undefined && { press: signIn.pressed.name }) },
    consent: {
      has,
      ...(consent.pressed !== undefined && { approve: consent.pressed }),
      ...(deny !== undefined && { deny }),
    },
  }
}

function denialOf(action: Action | undefined): Recording['consent']['deny'] {
  if (action === undefined) return undefined
  if ('controls' in action) return action.pressed
  const last = new URL(action.link).pathname.split('/').at(-1) ?? ''
  return { link: `/${last.replaceAll(/[^\w-]/g, '.')}$` }
}

/** Opens a page of the browser, over the pipes 3 and 4 of its process. */
async function openPage(browser: ChildProcess, ending: AbortSignal): Promise<DevTools> {
  // `as`: what spawn was asked for.
  const [, , , input, output] = browser.stdio as unknown as readonly Duplex[]
  const waiting = new Map<number, PromiseWithResolvers<Readonly<Record<string, unknown>>>>()
  let take: Parameters<DevTools['onEvent']>[0] = () => {}
  let [count, rest, session] = [0, '', '']
  const end = Promise.withResolvers<never>()
  end.promise.catch(() => {})
  browser.once('error', ({ message }) => end.reject(new CommandFailed(`--browser: ${message}`)))
  browser.once('exit', () =>
    end.reject(new CommandFailed('the browser was closed before the request came back')),
  )
  ending.addEventListener('abort', () => end.reject(new CommandFailed('nothing was recorded')))
  input?.on('error', () => {})
  output?.setEncoding('utf8').on('data', (chunk: string) => {
    const messages = (rest + chunk).split('\0')
    rest = messages.pop() ?? ''
    for (const { id, method, params, result } of messages.map((text) => JSON.parse(text))) {
      if (method === undefined) waiting.get(id)?.resolve(result ?? {})
      else take(method, params)
    }
  })
  const send: DevTools['send'] = (method, params = {}) => {
    count += 1
    const response = Promise.withResolvers<Readonly<Record<string, unknown>>>()
    waiting.set(count, response)
    input?.write(
      `${JSON.stringify({ id: count, method, params, ...(session !== '' && { sessionId: session }) })}\0`,
    )
    return Promise.race([response.promise, end.promise])
  }
  const { targetId } = await send('Target.createTarget', { url: 'about:blank' })
  const { sessionId } = await send('Target.attachToTarget', { targetId, flatten: true })
  session = String(sessionId)
  for (const domain of ['Page', 'Network', 'Runtime']) await send(`${domain}.enable`)
  await send('Runtime.addBinding', { name: binding })
  await send('Page.addScriptToEvaluateOnNewDocument', { source: listener })
  return {
    send,
    onEvent(next) {
      take = next
    },
    ended: end.promise,
  }
}
