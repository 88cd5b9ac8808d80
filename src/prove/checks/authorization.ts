import { parseJws } from '../../domain/jws.ts'
import { asksForPassword, type Ended } from '../browser.ts'
import { type Check, checksBy } from '../check.ts'
import { redirectUri } from '../clients.ts'
import { endsWithCode, endsWithError, endsWithout, observe, withoutHeader } from '../expect.ts'
import type { Lab } from '../lab.ts'
import { judge, judgeEach, NotApplicable, type Seen } from '../observation.ts'
import { encode, type Params } from '../params.ts'
import { membersOf } from '../server.ts'

/** RFC 6749 §3.1 and §4.1, RFC 9207: authorization requests, correct and wrong. */
export const authorizationChecks: readonly Check[] = checksBy({
  'rfc8414-2-response-types/offered': offersEachType,
  'oidc-disc-3-response-types/offered': offersEachType,
  'rfc6749-4.1.2-state-exact': async (lab) => {
    const state = ' a b+c%20d&e=f"<>/?#~ '
    const ended = await lab.authorize({ state })
    const came = ended.kind === 'callback' ? ended.params.get('state') : undefined
    return judgeEach(
      endsWithCode(ended),
      observe(came === state, `state is ${String(came)} instead of ${state}`, ended.seen),
    )
  },
  'rfc6749-4.1.2.1-state-on-error': async (lab) => {
    // RFC 6749 appendix A.5: printable ASCII.
    const state = 'x y+%&~'
    const [sent, none] = [await failing(lab, { state }), await failing(lab, { state: undefined })]
    const [one, other] = [stateOf(sent), stateOf(none)]
    return judgeEach(
      observe(one === state, `state is ${String(one)}`, sent.seen),
      observe(other === null, `state is ${String(other)}, and none was sent`, none.seen),
    )
  },
  'rfc6749-4.1.2.1-invalid-scope': async (lab) => {
    const ended = await lab.authorize({ scope: `${lab.scope()} lychgate-prove:none`, prompt: 'consent' })
    // RFC 6749 §3.3 lets a server ignore a part of the scope.
    return ended.kind === 'callback' && ended.params.has('code')
      ? ignoresScope(lab, ended)
      : endsWithError(ended, 'invalid_scope')
  },
  'rfc6749-3.3-scope-case-sensitive': async (lab) => {
    const scope = String(lab.scope()).split(' ')[1] ?? 'openid'
    const { asked, ...ended } = await lab.authorize({
      scope: scope.toUpperCase(),
      nonce: undefined,
      prompt: undefined,
    })
    if (ended.kind !== 'callback' || !ended.params.has('code')) return endsWithout(ended)
    const seen = await lab.redeem({ ...asked, code: ended.params.get('code') ?? '', ended })
    const granted = String(membersOf(seen)?.['scope'] ?? '').split(' ')
    return observe(!granted.includes(scope), `scope ${scope} is granted for ${scope.toUpperCase()}`, seen)
  },
  'rfc6749-3.3-scope-order-irrelevant': async (lab) => {
    const reversed = String(lab.scope()).split(' ').reverse().join(' ')
    return endsWithCode(await lab.authorize({ scope: reversed, prompt: 'consent' }))
  },
  'rfc6749-3.1-no-duplicate-request-params': async (lab) => {
    const judged = []
    for (const name of ['state', 'scope', 'code_challenge', 'response_type']) {
      const { params } = await lab.request()
      const value = String(params[name])
      judged.push(endsWithout(await lab.authorize({ [name]: [value, value] }), 'invalid_request'))
    }
    return judgeEach(...judged)
  },
  'rfc6749-3.1-no-duplicate-response-params': async (lab) => {
    const { ended } = await lab.code()
    const names = ended.kind === 'callback' ? [...ended.params.keys()] : []
    return observe(new Set(names).size === names.length, `twice: ${names.join(' ')}`, ended.seen)
  },
  'rfc6749-4.1.2.1-error-charset': async (lab) => {
    const ended = await lab.authorize({ response_type: 'größe"\\' })
    const texts =
      ended.kind === 'callback'
        ? ['error', 'error_description'].map((name) => ended.params.get(name) ?? '')
        : []
    return observe(
      texts.every((text) => /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/.test(text)),
      `found: ${texts.join(', ')}`,
      ended.seen,
    )
  },
  'rfc9207-2.3-flag': async (lab) => {
    const { ended } = await lab.code()
    const isPromised = lab.server.metadata['authorization_response_iss_parameter_supported'] === true
    const isSent = ended.kind === 'callback' && ended.params.has('iss')
    if (!isSent && !isPromised) throw new NotApplicable('the server sends no iss')
    return observe(isSent === isPromised, 'the metadata do not say what the response does', ended.seen)
  },
  'rfc9207-2-iss-on-success': async (lab) => issOf(lab, (await lab.code()).ended),
  'rfc9207-2-iss-on-error': async (lab) => issOf(lab, await failing(lab)),
  'rfc9700-4.12-no-307': async (lab) => {
    const browser = lab.freshBrowser()
    const { asked, ...ended } = await lab.authorize({}, { browser })
    return judgeEach(
      endsWithCode(ended),
      ...browser
        .afterForms()
        .map((seen) =>
          observe(![307, 308].includes(seen.status), `status ${seen.status} after a form`, seen),
        ),
    )
  },
  'rfc6749-10.13-frame-protection': async (lab) => {
    const seen = await signInPage(lab)
    const policy = String(seen.headers['content-security-policy'])
    // Browsers read X-Frame-Options only where there is no frame-ancestors.
    const isFramed = /frame-ancestors/.test(policy)
      ? /frame-ancestors \*/.test(policy)
      : !/deny|sameorigin/i.test(String(seen.headers['x-frame-options']))
    return observe(!isFramed, 'neither frame-ancestors nor X-Frame-Options', seen)
  },
  'rfc9700-4.2.4-no-third-party-content': async (lab) => {
    const seen = await signInPage(lab)
    const foreign = [
      ...seen.body.matchAll(/<(?:script|img|iframe|link)\b[^>]*\b(?:src|href)="(https?:[^"]+)"/g),
    ]
      .map(([, url = '']) => url)
      .filter((url) => !url.startsWith(new URL(lab.server.issuer).origin))
    return observe(foreign.length === 0, `it loads ${foreign[0]}`, seen)
  },
  'rfc6749-10.14-sanitise': async (lab) => {
    const hostile = '"><script>lychgate</script>'
    const judged = []
    for (const params of [
      { state: hostile },
      { login_hint: hostile },
      { client_id: hostile },
      { redirect_uri: `https://evil.example/${hostile}` },
    ]) {
      const { seen } = await lab.authorize(params, {
        browser: lab.freshBrowser(),
        stopsAtPage: true,
        plain: true,
      })
      judged.push(
        observe(
          !/html/.test(String(seen.headers['content-type'])) || !seen.body.includes('<script>lychgate'),
          `the page has ${hostile}`,
          seen,
        ),
      )
    }
    return judgeEach(...judged)
  },
  'rfc6749-10.12-csrf-approval': async (lab) => {
    await lab.authorize()
    const { seen: page } = await lab.authorize({ prompt: 'consent' }, { stopsAtPage: true })
    const forged = await lab.freshBrowser().decide(page, redirectUri)
    return forged.kind === 'page' ? { seen: [forged.seen] } : endsWithout(forged)
  },
  'rfc8707-2-absolute-no-fragment': async (lab) => {
    const judgement = judgeEach(
      endsWithout(await lab.authorize({ resource: '/relative' })),
      endsWithout(await lab.authorize({ resource: `${lab.server.issuer}#fragment` })),
    )
    // RFC 6749 §3.1: a server without resource indicators ignores the parameter.
    if (judgement.fault !== undefined && !(await readsResource(lab)))
      throw new NotApplicable('nothing shows that the server reads resource')
    return judgement
  },
  'rfc9700-2.6-no-cors-authorize': async (lab) => {
    const { asked } = await lab.authorize()
    const url = `${lab.server.endpoint('authorization_endpoint')}?${encode(asked.params)}`
    const headers = { origin: 'https://evil.example', 'access-control-request-method': 'GET' }
    const isClosed = withoutHeader('access-control-allow-origin')
    return judgeEach(
      judge(await lab.wire.send({ url, headers }), isClosed),
      judge(await lab.wire.send({ url, headers, method: 'OPTIONS' }), isClosed),
    )
  },
  'fapi2-5.3.2.2-iss': async (lab) => issOf(lab, (await lab.code()).ended),
  'rfc6749-4.1.1-validate-request': async (lab) => {
    const browser = lab.freshBrowser()
    const ended = await lab.authorize({ response_type: 'lychgate-prove' }, { browser, stopsAtPage: true })
    return judgeEach(
      endsWithout(ended),
      observe(!asksForPassword(ended.seen), 'the user is asked to sign in', ended.seen),
    )
  },
})

/** Whether an unknown resource is rejected, or becomes the audience of an access token. */
async function readsResource(lab: Lab): Promise<boolean> {
  const resource = 'https://lychgate-prove.example/api'
  const ended = await lab.authorize({ resource })
  if (ended.kind !== 'callback' || !ended.params.has('code')) return true
  const { accessToken } = await lab.grant({ resource })
  return [parseJws(accessToken)?.claims['aud']].flat().includes(resource)
}

/** Asks for each response type of the metadata. */
async function offersEachType(lab: Lab) {
  const judged = []
  for (const type of lab.server.list('response_types_supported') ?? []) {
    const ended = await lab.authorize({ response_type: type, response_mode: undefined })
    const error = ended.kind === 'callback' ? ended.params.get('error') : null
    judged.push(observe(error !== 'unsupported_response_type', `${type} is unsupported`, ended.seen))
  }
  return judgeEach(...judged)
}

/** The first page that a browser without cookies is shown. */
async function signInPage(lab: Lab): Promise<Seen> {
  return (await lab.authorize({}, { browser: lab.freshBrowser(), stopsAtPage: true })).seen
}

/** A request whose error comes to the client: one that is pushed gets its own at the push, so the user denies it. */
function failing(lab: Lab, params: Params = {}) {
  return lab.traits.pushes
    ? lab.authorize({ prompt: 'consent', ...params }, { decision: 'deny' })
    : lab.authorize({ response_type: 'lychgate-prove', ...params })
}

function stateOf(ended: Ended): string | null | undefined {
  return ended.kind === 'callback' ? ended.params.get('state') : undefined
}

/** The iss of a response at the client; a server that does not promise one need not send it. */
function issOf(lab: Lab, ended: Ended) {
  if (lab.server.metadata['authorization_response_iss_parameter_supported'] !== true)
    throw new NotApplicable('the metadata do not promise iss')
  if (ended.kind === 'page') return observe(false, 'the browser is not sent back to the client', ended.seen)
  const values = ended.params.getAll('iss')
  return observe(
    values.length === 1 && values[0] === lab.server.issuer,
    `iss is ${values.join(' and ') || 'missing'}`,
    ended.seen,
  )
}

async function ignoresScope(
  lab: Lab,
  ended: Ended & { readonly asked: Awaited<ReturnType<Lab['request']>> },
) {
  const code = ended.kind === 'callback' ? (ended.params.get('code') ?? '') : ''
  const seen = await lab.redeem({ ...ended.asked, code, ended })
  const scope = membersOf(seen)?.['scope']
  return observe(
    typeof scope === 'string' && !scope.includes('lychgate-prove'),
    `scope is ${String(scope)}: the client does not learn that less was granted`,
    seen,
  )
}
