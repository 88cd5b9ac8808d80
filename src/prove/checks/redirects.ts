import { redirectOf } from '../browser.ts'
import { type Check, checksBy } from '../check.ts'
import { basicMetadata, type Client, redirectUri } from '../clients.ts'
import { endsOnPage, endsWithCode, observe } from '../expect.ts'
import type { Lab } from '../lab.ts'
import { type Judgement, judgeEach, NotApplicable } from '../observation.ts'
import { membersOf } from '../server.ts'

/** What another reader of URLs may take for the registered one: none of these equals it. */
const lookAlikes = (registered: string): readonly string[] => {
  const { host, protocol, pathname } = new URL(registered)
  const base = `${protocol}//${host}`
  return [
    `${registered}/`,
    `${registered}/extra`,
    `${registered}?x=1`,
    `${registered}%20`,
    `${registered}.evil.example`,
    `${base}/`,
    `${base}/other${pathname}`,
    `${base}/other/..${pathname}`,
    `${base}/.${pathname}`,
    `${base}/${pathname}`,
    `${base}${pathname.toUpperCase()}`,
    `${base}${pathname.replace(/[a-z]/, (letter) => `%${letter.charCodeAt(0).toString(16)}`)}`,
    `${base}\\@evil.example${pathname}`,
    `${base}@evil.example${pathname}`,
    `${protocol}//evil.example\\@${host}${pathname}`,
    `${protocol}//evil.example#@${host}${pathname}`,
    `${protocol}//user:pass@${host}${pathname}`,
    `${protocol}//evil.example/?${registered}`,
    `${protocol}//${host.replace(/^[^:]+/, '$&.evil.example')}${pathname}`,
    `//${host}${pathname}`,
    pathname,
    `javascript:alert(1)//${registered}`,
    `data:text/html,${registered}`,
  ]
}

/** RFC 6749 §3.1.2, RFC 8252 §7.3 and RFC 9700 §2.1: where the browser may be sent to. */
export const redirectChecks: readonly Check[] = checksBy({
  'rfc6749-3.1.2.3-simple-string-match': async (lab) => {
    const { redirectUri: registered } = await lab.client()
    const judged: Judgement[] = []
    for (const uri of lookAlikes(registered)) judged.push(await staysHere(lab, uri))
    return judgeEach(...judged)
  },
  'rfc9700-2.1-exact-match-all-clients': async (lab) => {
    const client = await lab.confidential()
    const judged: Judgement[] = []
    for (const uri of lookAlikes(client.redirectUri).slice(0, 8))
      judged.push(await staysHere(lab, uri, client))
    const { redirectUri: uri, metadata } = client
    // RFC 8252 §7.3 is about native apps.
    if (metadata['application_type'] === 'web' && /^http:\/\/127/.test(uri))
      judged.push(await staysHere(lab, uri.replace(/:\d+/, ':51234'), client))
    return judgeEach(...judged)
  },
  'rfc6749-3.1.2.4-invalid-not-redirected': (lab) => staysHere(lab, 'https://evil.example/callback'),
  'rfc6749-3.1.2-redirect-no-fragment': async (lab) =>
    staysHere(lab, `${(await lab.client()).redirectUri}#fragment`),
  'rfc6749-4.1.2.1-client-error-page': async (lab) => {
    const client = await lab.client()
    const judged: Judgement[] = []
    for (const id of [
      'lychgate-prove-unknown',
      `${client.id}x`,
      client.id.toUpperCase() === client.id ? `${client.id} ` : client.id.toUpperCase(),
      undefined,
    ]) {
      const ended = await lab.authorize({ client_id: id }, { stopsAtPage: true, plain: true })
      judged.push(endsOnPage(ended))
    }
    return judgeEach(...judged)
  },
  'rfc6749-10.15-no-open-redirector': async (lab) => {
    const ended = await lab.authorize(
      { redirect_uri: 'https://evil.example/callback', response_type: 'nonsense', scope: 'nonsense' },
      { stopsAtPage: true, plain: true },
    )
    return endsOnPage(ended)
  },
  'fapi2-5.3.2.1-no-open-redirector': (lab) => staysHere(lab, 'https://evil.example/callback'),
  'rfc6749-3.1.2-redirect-query-retained': async (lab) => {
    const uri = `${redirectUri}?kept=1%2B2&kept=3`
    const client = await lab.client('main', { redirect_uris: [uri] })
    const ended = await lab.authorize({ redirect_uri: uri }, { client })
    const location = redirectOf(ended.seen) ?? ''
    const isKept = location.startsWith(`${uri}&`) && ended.kind === 'callback' && ended.params.has('code')
    return observe(
      isKept,
      `the redirect goes to ${location.replace(/code=[^&]*/, 'code=…') || 'no place'}`,
      ended.seen,
    )
  },
  'rfc6749-3.1.2.3-required-when-ambiguous': async (lab) => {
    const client = await lab.client('main', { redirect_uris: [redirectUri, `${redirectUri}/second`] })
    // OpenID Connect demands the parameter in any case, so no ID Token is asked for.
    const scope = lab.server
      .list('scopes_supported')
      ?.find((name) => !/^(?:openid|offline_access)$/.test(name))
    const params = { redirect_uri: undefined, scope, nonce: undefined, prompt: undefined }
    return endsOnPage(await lab.authorize(params, { client, plain: true }))
  },
  'rfc6749-3.1-no-duplicate-response-params/registered': async (lab) => {
    const uri = `${redirectUri}?code=1&state=2`
    const metadata = basicMetadata((await lab.client()).method)
    const registered = await lab.clients.post({ ...metadata, redirect_uris: [uri] })
    const { client_id: id } = membersOf(registered) ?? {}
    if (registered.status >= 300 || typeof id !== 'string') return { seen: [registered] }
    const client = { ...(await lab.client()), id, redirectUri: uri }
    const { seen } = await lab.authorize({}, { client })
    const names = [...(URL.parse(redirectOf(seen) ?? '')?.searchParams.keys() ?? [])]
    return observe(new Set(names).size === names.length, `twice: ${names.join(' ')}`, registered, seen)
  },
  'rfc8252-7.3-any-port': async (lab) => {
    const { client, uri } = await native(lab)
    const judged: Judgement[] = []
    for (const port of ['1', '51234', '65535'])
      judged.push(
        endsWithCode(await lab.authorize({ redirect_uri: uri.replace(/:\d+/, `:${port}`) }, { client })),
      )
    return judgeEach(...judged)
  },
  'rfc8252-7.3-port-only-varies': async (lab) => {
    const { client, uri } = await native(lab)
    const changed = [
      uri.replace('127.0.0.1', '127.0.0.2'),
      uri.replace('127.0.0.1', 'localhost'),
      uri.replace('127.0.0.1', '[::1]'),
      uri.replace('127.0.0.1', '2130706433'),
      uri.replace('http:', 'https:'),
      uri.replace('127.0.0.1', '127.0.0.1.evil.example'),
      uri.replace('127.0.0.1:', 'evil@127.0.0.1:'),
      `${uri}?x=1`,
      `${uri}/x`,
    ]
    const judged: Judgement[] = []
    for (const one of changed) judged.push(await staysHere(lab, one, client))
    return judgeEach(...judged)
  },
})

/** Sends a request with this redirect URI, signs in and approves; the browser must not be sent there, or with a code. */
async function staysHere(lab: Lab, uri: string, client?: Client): Promise<Judgement> {
  const by = client ?? (await lab.client())
  const ended = await lab.authorize({ redirect_uri: uri }, { client: by })
  const { seen } = ended
  const location = redirectOf(seen)
  if (ended.kind === 'page' && location === undefined) return { seen: [seen] }
  // An error may go to the registered URI.
  const isSound =
    location !== undefined && isSameTarget(location, by.redirectUri) && !/[?&]code=/.test(location)
  return { seen: [seen], fault: isSound ? undefined : `with redirect_uri ${uri} the browser is sent away` }
}

function isSameTarget(location: string, registered: string): boolean {
  return location.replace(/[?#].*$/, '') === registered
}

async function native(lab: Lab): Promise<{ client: Client; uri: string }> {
  const client = await lab.client('none')
  if (!client.redirectUri.startsWith('http://127.0.0.1:'))
    throw new NotApplicable('the client has no loopback redirect URI with a port')
  return { client, uri: client.redirectUri }
}
