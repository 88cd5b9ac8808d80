import { type Check, checksBy } from '../check.ts'
import { denies, noStore, observe, rejected, tokens } from '../expect.ts'
import type { Grant } from '../flow.ts'
import type { Lab } from '../lab.ts'
import { judge, judgeEach, NotApplicable, NotTestable } from '../observation.ts'
import { membersOf } from '../server.ts'

/** RFC 6749 §6 and RFC 9700 §4.14: refresh tokens. */
export const refreshChecks: readonly Check[] = checksBy({
  'rfc6749-6-scope-omitted-original': async (lab) => {
    const { client, refreshToken, members } = await lab.refreshable()
    const seen = await lab.refresh(client, refreshToken)
    const scope = membersOf(seen)?.['scope']
    const same =
      scope === undefined ||
      members['scope'] === undefined ||
      isSameScope(String(scope), String(members['scope']))
    return judgeEach(
      judge(seen, tokens, noStore),
      observe(same, `scope is ${String(scope)} instead of ${String(members['scope'])}`, seen),
    )
  },
  'rfc6749-6-scope-exceed': async (lab) => {
    const extra = lab.server
      .list('scopes_supported')
      ?.find((name) => !String(lab.scope()).split(' ').includes(name))
    if (extra === undefined) throw new NotApplicable('no other scope is known')
    const { client, refreshToken, members } = await lab.refreshable()
    const seen = await lab.refresh(client, refreshToken, {
      scope: `${String(members['scope'] ?? lab.scope())} ${extra}`,
    })
    const granted = String(membersOf(seen)?.['scope'] ?? '').split(' ')
    const got = membersOf(seen)?.['access_token'] !== undefined
    return judgeEach(
      observe(!(got && granted.includes(extra)), `scope ${extra} is granted`, seen),
      got ? observe(false, 'the request is accepted', seen) : judge(seen, rejected('invalid_scope')),
    )
  },
  'rfc6749-6-scope-narrow': async (lab) => {
    const { client, refreshToken, members } = await lab.refreshable()
    const [first, ...others] = String(members['scope'] ?? lab.scope()).split(' ')
    if (first === undefined || others.length === 0)
      throw new NotApplicable('one scope was granted, which has no part')
    const seen = await lab.refresh(client, refreshToken, { scope: first })
    const scope = membersOf(seen)?.['scope']
    return judgeEach(
      judge(seen, tokens),
      observe(scope === first, `scope is ${String(scope)} instead of ${first}`, seen),
    )
  },
  'rfc6749-6-rotated-same-scope': async (lab) => {
    const { client, refreshToken, members } = await lab.refreshable()
    const whole = String(members['scope'] ?? lab.scope())
    const narrow = await lab.refresh(client, refreshToken, { scope: whole.split(' ')[0] })
    const next = membersOf(narrow)?.['refresh_token'] ?? refreshToken
    const seen = await lab.refresh(client, String(next))
    const scope = membersOf(seen)?.['scope']
    return judgeEach(
      judge(seen, tokens),
      observe(
        scope === undefined || isSameScope(String(scope), whole),
        `scope is ${String(scope)} instead of ${whole}`,
        narrow,
        seen,
      ),
    )
  },
  'rfc9700-2.2.2-public-refresh-protection': replaced,
  'mcp-security-refresh-rotation': replaced,
  'rfc9700-4.14.2-reuse-revokes-family': async (lab) => {
    const { first, second } = await rotated(lab)
    if (second === undefined || second === first.refreshToken)
      throw new NotTestable('refresh tokens are not replaced')
    // A second rotation, so that a retry of the first that a server forgives is none.
    const third = membersOf(await lab.refresh(first.client, second))?.['refresh_token']
    if (typeof third !== 'string') throw new NotTestable('the replacement does not work')
    const reused = await lab.refresh(first.client, first.refreshToken)
    const after = await lab.refresh(first.client, third)
    return judgeEach(denies(reused, 'invalid_grant'), denies(after, 'invalid_grant'))
  },
  'rfc9700-4.14.2-reuse-revokes-family/race': async (lab) => {
    const client = await lab.client('none')
    const { refreshToken } = await lab.refreshable({ client })
    const all = await Promise.all(Array.from({ length: 10 }, () => lab.refresh(client, refreshToken)))
    const next = [
      ...new Set(
        all.map((seen) => membersOf(seen)?.['refresh_token']).filter((token) => typeof token === 'string'),
      ),
    ]
    if (next.includes(refreshToken)) throw new NotTestable('refresh tokens are not replaced')
    const used = []
    for (const token of next) used.push(await lab.refresh(client, token))
    const live = used.filter((seen) => seen.status === 200)
    return observe(
      live.length <= 1,
      `${live.length} refresh tokens work after it`,
      ...all.slice(0, 1),
      ...live.slice(0, 2),
    )
  },
  'rfc7662-4-all-state-checks/rotated': async (lab) => {
    const { first, second } = await rotated(lab)
    if (second === undefined || second === first.refreshToken)
      throw new NotApplicable('refresh tokens are not replaced')
    // A second rotation: some servers forgive a retry of the first.
    await lab.refresh(first.client, second)
    const asked = { token: first.refreshToken, token_type_hint: 'refresh_token' }
    const seen = await lab.post('introspection_endpoint', asked, { client: first.client })
    const used = await lab.refresh(first.client, first.refreshToken)
    if (used.status === 200) throw new NotApplicable('a refresh token works after its replacement')
    if (seen.status !== 200) throw new NotTestable(`introspection ends with status ${seen.status}`)
    return observe(membersOf(seen)?.['active'] === false, 'a replaced refresh token is active', seen, used)
  },
  'fapi2-5.3.2.1-no-rotation': async (lab) => {
    const { client, refreshToken } = await lab.refreshable()
    const seen = await lab.refresh(client, refreshToken)
    const next = membersOf(seen)?.['refresh_token']
    return judgeEach(
      judge(seen, tokens),
      observe(next === undefined || next === refreshToken, 'another refresh token comes', seen),
    )
  },
})

/** A refresh token of a public client works once: another one comes. */
async function replaced(lab: Lab) {
  const { first, second } = await rotated(lab)
  return observe(
    second !== undefined && second !== first.refreshToken,
    'the same refresh token goes on',
    first.rotation,
  )
}

async function rotated(lab: Lab) {
  const client = await lab.client('none')
  const grant: Grant & { readonly refreshToken: string } = await lab.refreshable({ client })
  const rotation = await lab.refresh(client, grant.refreshToken)
  const { access_token: token, refresh_token: second } = membersOf(rotation) ?? {}
  if (typeof token !== 'string') throw new NotTestable(`a correct refresh gets status ${rotation.status}`)
  return { first: { ...grant, rotation }, second: typeof second === 'string' ? second : undefined }
}

function isSameScope(one: string, other: string): boolean {
  return one.split(' ').sort().join(' ') === other.split(' ').sort().join(' ')
}
