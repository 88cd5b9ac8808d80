import { type Check, checksBy } from '../check.ts'
import type { Client } from '../clients.ts'
import { denies, json, member, noToken, observe, rejected, status } from '../expect.ts'
import type { Lab } from '../lab.ts'
import { judge, judgeEach } from '../observation.ts'
import { membersOf } from '../server.ts'

const isTrue = member('active', (value) => value === true, 'it should be true')
const isFalse = member('active', (value) => value === false, 'it should be false')

/** RFC 7009 and RFC 7662: ending tokens, and asking about them. */
export const revocationChecks: readonly Check[] = checksBy({
  'rfc7009-2-refresh-revocation': async (lab) => {
    const { client, refreshToken } = await lab.refreshable()
    const revoked = await lab.post('revocation_endpoint', { token: refreshToken }, { client })
    return judgeEach(
      judge(revoked, status(200)),
      denies(await lab.refresh(client, refreshToken), 'invalid_grant'),
    )
  },
  'rfc7009-2-access-revocation': async (lab) => {
    const { client, accessToken } = await lab.grant()
    const revoked = await lab.post('revocation_endpoint', { token: accessToken }, { client })
    const after = await lab.isActive(accessToken, client)
    return judgeEach(judge(revoked, status(200)), observe(!after.active, 'it still works', after.seen))
  },
  'rfc7009-2.1-refresh-cascades': async (lab) => {
    const { client, accessToken, refreshToken } = await lab.refreshable()
    const revoked = await lab.post('revocation_endpoint', { token: refreshToken }, { client })
    const after = await lab.isActive(accessToken, client)
    return judgeEach(
      judge(revoked, status(200)),
      observe(!after.active, 'the access token still works', after.seen),
    )
  },
  'rfc7009-2.2-bad-hint-ignored': async (lab) => {
    const { client, refreshToken } = await lab.refreshable()
    const revoked = await lab.post(
      'revocation_endpoint',
      { token: refreshToken, token_type_hint: 'lychgate_prove' },
      { client },
    )
    return judgeEach(judge(revoked, status(200)), judge(await lab.refresh(client, refreshToken), noToken))
  },
  'rfc7009-2.1-hint-extends-search': async (lab) => {
    const { client, refreshToken } = await lab.refreshable()
    await lab.post(
      'revocation_endpoint',
      { token: refreshToken, token_type_hint: 'access_token' },
      { client },
    )
    return denies(await lab.refresh(client, refreshToken), 'invalid_grant')
  },
  'rfc7009-2.1-issued-to-client': async (lab) => {
    const { client, refreshToken } = await lab.refreshable()
    const foreign = await lab.post(
      'revocation_endpoint',
      { token: refreshToken },
      { client: await lab.client('other') },
    )
    const after = await lab.refresh(client, refreshToken)
    return observe(after.status === 200, `its refresh gets status ${after.status}`, foreign, after)
  },
  'rfc7009-2.1-confidential-authenticates': async (lab) => {
    const client = await lab.confidential()
    const { accessToken } = await lab.grant({}, { client })
    const seen = await lab.post('revocation_endpoint', { token: accessToken, client_id: client.id })
    return judge(seen, rejected('invalid_client'))
  },
  'rfc7009-2-post-form': async (lab) => {
    const { client, accessToken } = await lab.grant()
    const query = new URLSearchParams({ token: accessToken, client_id: client.id })
    const seen = await lab.wire.send({ url: `${lab.server.endpoint('revocation_endpoint')}?${query}` })
    const after = await lab.isActive(accessToken, client)
    return observe(seen.status >= 400 && after.active, `GET gets status ${seen.status}`, seen, after.seen)
  },
  'rfc7662-2.2-active-boolean': async (lab) => {
    const client = await lab.confidential()
    const { accessToken } = await lab.grant({}, { client })
    return judgeEach(
      judge(await introspect(lab, accessToken, client), status(200), json, isTrue),
      judge(await introspect(lab, 'lychgate-prove', client), status(200), json, isFalse),
    )
  },
  'rfc7662-2.2-inactive-form': async (lab) =>
    judge(await introspect(lab, 'lychgate-prove', await lab.confidential()), status(200), isFalse),
  'rfc7662-2.2-inactive-no-extra': async (lab) => {
    const seen = await introspect(lab, 'lychgate-prove', await lab.confidential())
    return judge(seen, isFalse, (one) =>
      Object.keys(membersOf(one) ?? {}).length === 1 ? undefined : 'there are other members',
    )
  },
  'rfc7662-2.1-caller-authorised': async (lab) => {
    const { accessToken } = await lab.grant()
    const seen = await lab.post('introspection_endpoint', { token: accessToken })
    return observe(
      seen.status >= 400 && membersOf(seen)?.['active'] !== true,
      `it gets status ${seen.status}`,
      seen,
    )
  },
  'rfc7662-2.3-bad-client-401': async (lab) => {
    const client = await lab.client('client_secret_basic')
    return judge(
      await lab.post('introspection_endpoint', { token: 'x' }, { client: { ...client, secret: 'wrong' } }),
      status(401),
    )
  },
  'rfc7662-2.1-hint-extends-search': async (lab) => {
    const client = await lab.confidential()
    const { accessToken } = await lab.grant({}, { client })
    const seen = await lab.post(
      'introspection_endpoint',
      { token: accessToken, token_type_hint: 'refresh_token' },
      { client },
    )
    return judge(seen, isTrue)
  },
  'rfc7662-4-all-state-checks': async (lab) => {
    const client = await lab.confidential()
    const { accessToken } = await lab.grant({}, { client })
    const before = await introspect(lab, accessToken, client)
    await lab.post('revocation_endpoint', { token: accessToken }, { client })
    const after = await introspect(lab, accessToken, client)
    return judgeEach(judge(before, isTrue), judge(after, status(200), isFalse))
  },
})

function introspect(lab: Lab, token: string, client: Client) {
  return lab.post('introspection_endpoint', { token }, { client })
}
