/** The OpenID Foundation's basic certification plan, module by module, as its suite would run it against us. */
import t from 'tap'
import { startSuite } from '../helpers/openid-suite.ts'
import { flowModules } from './openid-flow.suite.ts'
import { requestModules } from './openid-requests.suite.ts'
import { furtherScopeModules, shippedScopeModules } from './openid-scopes.suite.ts'
import { sessionModules } from './openid-sessions.suite.ts'

const suite = await startSuite(t)
flowModules(suite)
requestModules(suite)
sessionModules(suite)
shippedScopeModules(suite)
furtherScopeModules(
  await startSuite(t, 'query', {
    scopes: [
      ...suite.server.deps.config.scopes,
      scope('address', ['address']),
      scope('phone', ['phone_number', 'phone_number_verified']),
    ],
  }),
)

function scope(name: string, claims: string[]) {
  return { name, group: name, access: 'identity' as const, description: `Know your ${name}`, claims }
}
