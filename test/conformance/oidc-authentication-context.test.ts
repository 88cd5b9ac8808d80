import t from 'tap'
import { ask, assertErrorRedirect, integrate, sentAway, signedIn } from '../helpers/authorization.ts'
import { authorize, claimsOf, exchange, refresh, type Tokens } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { json } from '../helpers/wire.ts'

// OpenID Connect Core §5.5.1.1: a context class is voluntary unless it is essential.
const server = await startServer(t)
const portal = await integrate(server, { consent: 'skip' })
const user = await signedIn(server, portal)
const metadata = await json(await fetch(`${server.issuer}/.well-known/openid-configuration`))
const offered = metadata['acr_values_supported'] as string[]
const password = 'urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport'
const acr = (member: object) => JSON.stringify({ id_token: { acr: member } })

t.test(
  '[oidc-core-2-acr-amr] [oidc-disc-3-optional-lists] a password sign-in has one class, in the first ID Token and in refreshed ones',
  async (t) => {
    t.strictSame(offered, ['phr', 'https://refeds.org/profile/mfa', password])
    t.ok((metadata['claims_supported'] as string[]).includes('acr'))
    const { code } = sentAway(await ask(server, portal, { acr_values: password }, user))
    const tokens = (await (await exchange(server, portal, String(code))).json()) as Tokens
    const later = (await (await refresh(server, portal, tokens.refresh_token)).json()) as Tokens
    for (const { id_token: idToken } of [tokens, later]) t.equal(claimsOf(idToken)['acr'], password)
  },
)

t.test(
  '[oidc-core-5.5.1.1-acr-essential] an essential class that is offered, and any voluntary one, ends with a code',
  async (t) => {
    const wishes = [
      acr({ essential: true }),
      acr({ essential: true, value: password }),
      acr({ essential: true, values: ['urn:example:gold', password] }),
      acr({ values: ['urn:example:gold'] }),
      acr({ essential: false, value: 'urn:example:gold' }),
    ]
    for (const claims of wishes) {
      const { code } = sentAway(await ask(server, portal, { claims }, user))
      const tokens = (await (await exchange(server, portal, String(code))).json()) as Tokens
      t.equal(claimsOf(tokens.id_token)['acr'], password, claims)
    }
  },
)

t.test(
  '[oidc-core-5.5.1.1-acr-essential] an essential class that no sign-in can have is rejected without a sign-in',
  async (t) => {
    const demands = [
      { essential: true, value: 'urn:example:gold' },
      { essential: true, values: ['urn:example:gold', 'urn:example:silver'] },
      { essential: true, values: [] },
      { essential: true, value: 1 },
    ]
    for (const demand of demands) {
      for (const fields of [{ claims: acr(demand) }, { claims: acr(demand), prompt: 'none' }]) {
        for (const agent of [user, undefined]) {
          const response = await authorize(server, portal, fields, agent)
          assertErrorRedirect(t, server, response, 'unmet_authentication_requirements', {
            to: portal.redirectUri,
            message: JSON.stringify(demand),
          })
        }
      }
    }
  },
)
