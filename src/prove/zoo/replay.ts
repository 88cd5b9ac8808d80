import { parseJws } from '../../domain/jws.ts'
import type { Check } from '../check.ts'
import { type AuthMethod, basic, type Client, redirectUri } from '../clients.ts'
import { endsWithCode, json, observe, status, tokens } from '../expect.ts'
import type { Lab } from '../lab.ts'
import { type Judgement, judge, judgeEach, NotTestable, type Rule } from '../observation.ts'
import { encode, formHeaders, type Params } from '../params.ts'
import { membersOf } from '../server.ts'
import { random, sha256 } from '../tokens.ts'
import recordings from './clients.json' with { type: 'json' }

/** What a real client sends, as it was recorded: its requests, their parameters in its order, and its headers. */
export interface RecordedClient {
  readonly app: string
  readonly version: string
  /** When and how it was recorded. */
  readonly recorded: string
  readonly redirect_uri: string
  readonly method: string
  readonly steps: readonly RecordedStep[]
}

/** Texts of the recording; TypeScript gives each of its objects the names of all. */
type Values = Readonly<Record<string, string | undefined>>

interface RecordedStep {
  /** The endpoint, by its name in the metadata. */
  readonly send: string
  /** `$code` stands for a value of the run, and `$state(36)` for a random one of that length. */
  readonly with?: Values
  readonly headers?: Values
  /** The scheme of its Authorization header. */
  readonly authorization?: string
  /** How often in a row it sends this request; absent: once. */
  readonly times?: number
}

export const recordedClients: Readonly<Record<string, RecordedClient>> = recordings

/** A client in the middle of its run. */
interface Run {
  readonly lab: Lab
  readonly client: Client
  readonly browser: ReturnType<Lab['freshBrowser']>
  readonly values: Record<string, string | undefined>
}

/**
 * Makes a check of each request of a recorded client: the server is sent what the client sends, and the response has to
 * be one that the client can go on with. After one that is not, the client sends nothing more.
 */
export function checksOfClient(name: string, recorded: RecordedClient): readonly Check[] {
  let begun: Promise<Run> | undefined
  let hasStopped = false
  return recorded.steps.map(
    (step, at): Check => ({
      id: `${name}-${at + 1}-${step.send.replace(/_endpoint$/, '')}`,
      level: 'MUST',
      wants: wantsOf(step),
      async run(lab) {
        if (hasStopped) throw new NotTestable('the client stops before this request')
        hasStopped = true
        begun ??= begin(lab, recorded)
        const judgement = await take(await begun, step)
        hasStopped = judgement.fault !== undefined
        return judgement
      },
    }),
  )
}

const refreshes = (step: RecordedStep) => step.with?.['grant_type'] === 'refresh_token'

function wantsOf(step: RecordedStep): string {
  const often = step.times === undefined ? '' : `, ${step.times} times in a row`
  if (step.send === 'authorization_endpoint') return 'the user comes back with a code'
  if (step.send === 'userinfo_endpoint') return `UserInfo has the user of the ID Token${often}`
  if (step.send === 'end_session_endpoint') return 'the user is signed out'
  return refreshes(step) ? `a refresh gets a token${often}` : 'the code gets the tokens that were asked for'
}

async function begin(lab: Lab, { method, steps }: RecordedClient): Promise<Run> {
  const returns = steps.some((step) => step.with?.['post_logout_redirect_uri'] !== undefined)
  const registered = returns ? { post_logout_redirect_uris: [redirectUri] } : {}
  // `as`: a method of the recordings.
  const client = await lab.client(method as AuthMethod, registered)
  const verifier = random(32)
  const values = {
    client_id: client.id,
    client_secret: client.secret,
    redirect_uri: client.redirectUri,
    post_logout_redirect_uri: returns ? client.redirectUri : undefined,
    verifier,
    challenge: sha256(verifier),
  }
  return { lab, client, browser: lab.freshBrowser(), values }
}

/** Returns the parameters of a step, in its order. */
function paramsOf({ values }: Run, { with: recorded = {} }: RecordedStep): Params {
  return Object.fromEntries(
    Object.entries(recorded).map(([name, value = '']) => {
      const [, variable, length] = /^\$(\w+)(?:\((\d+)\))?$/.exec(value) ?? []
      if (variable === undefined) return [name, value]
      if (length !== undefined) values[variable] = random(Number(length)).slice(0, Number(length))
      return [name, values[variable]]
    }),
  )
}

async function take(run: Run, step: RecordedStep): Promise<Judgement> {
  if (step.send === 'authorization_endpoint') return authorize(run, step)
  if (step.send === 'end_session_endpoint') return signOut(run, step)
  const judged: Judgement[] = []
  for (let time = 0; time < (step.times ?? 1); time += 1) {
    const judgement =
      step.send === 'userinfo_endpoint' ? await userinfo(run, step) : await exchange(run, step)
    judged.push(judgement)
    if (judgement.fault !== undefined) break
  }
  return judgeEach(...judged)
}

async function authorize(run: Run, step: RecordedStep): Promise<Judgement> {
  const { lab, client, browser, values } = run
  const ended = await browser.visit(
    { url: withQuery(lab.server.endpoint('authorization_endpoint'), paramsOf(run, step)) },
    { redirectUri: client.redirectUri },
  )
  const judgement = endsWithCode(ended)
  if (judgement.fault !== undefined || ended.kind !== 'callback') return judgement
  values['code'] = ended.params.get('code') ?? undefined
  return observe(
    ended.params.get('state') === values['state'],
    'state is not the one of the request',
    ended.seen,
  )
}

async function exchange(run: Run, step: RecordedStep): Promise<Judgement> {
  const { lab, client, values } = run
  const params = paramsOf(run, step)
  if (refreshes(step) && params['refresh_token'] === undefined)
    throw new NotTestable('the server issued no refresh token')
  const seen = await lab.wire.send({
    url: lab.server.endpoint('token_endpoint'),
    method: 'POST',
    headers: { ...formHeaders, ...headersOf(step, basic(client.id, client.secret ?? '')) },
    body: encode(params),
  })
  const members = membersOf(seen) ?? {}
  for (const name of ['access_token', 'refresh_token', 'id_token'])
    if (typeof members[name] === 'string') values[name] = members[name]
  return judge(seen, accepted, tokens, json, bearer, ...(refreshes(step) ? [] : [withIdToken]))
}

/** The error says more than its status. */
const accepted: Rule = (seen) =>
  seen.status === 200 ? undefined : `status ${seen.status}, ${String(membersOf(seen)?.['error'])}`

const bearer: Rule = (seen) =>
  String(membersOf(seen)?.['token_type']).toLowerCase() === 'bearer' ? undefined : 'token_type is not Bearer'

/** Each of these clients asks for openid. */
const withIdToken: Rule = (seen) =>
  typeof membersOf(seen)?.['id_token'] === 'string' ? undefined : 'there is no id_token'

async function userinfo({ lab, values }: Run, step: RecordedStep): Promise<Judgement> {
  const seen = await lab.wire.send({
    url: lab.server.endpoint('userinfo_endpoint'),
    headers: headersOf(step, `Bearer ${values['access_token']}`),
  })
  const sub = parseJws(values['id_token'] ?? '')?.claims['sub']
  const sameUser: Rule = (came) =>
    membersOf(came)?.['sub'] === sub ? undefined : 'sub is not the one of the ID Token'
  return judge(seen, status(200), json, sameUser)
}

async function signOut(run: Run, step: RecordedStep): Promise<Judgement> {
  const { lab, client, browser } = run
  const ended = await browser.visit(
    { url: withQuery(lab.server.endpoint('end_session_endpoint'), paramsOf(run, step)) },
    { redirectUri: client.redirectUri, decision: 'sign out' },
  )
  return observe(
    ended.kind === 'callback' || ended.seen.status < 400,
    `status ${ended.seen.status}`,
    ended.seen,
  )
}

function headersOf({ headers = {}, authorization }: RecordedStep, credentials: string) {
  const sent = Object.entries(headers).map(([name, value = '']) => [name, value])
  return { ...Object.fromEntries(sent), ...(authorization !== undefined && { authorization: credentials }) }
}

function withQuery(endpoint: string, params: Params): string {
  return `${endpoint}${endpoint.includes('?') ? '&' : '?'}${encode(params)}`
}
