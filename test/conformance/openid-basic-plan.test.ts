/**
 * The OpenID Foundation's basic certification plan, module by module, as its suite would run it. The modules about
 * scopes are in a separate file.
 */
import t from 'tap'
import { startSuite } from '../helpers/openid-suite.ts'
import { flowModules } from './openid-flow.suite.ts'
import { requestModules } from './openid-requests.suite.ts'
import { sessionModules } from './openid-sessions.suite.ts'

const suite = await startSuite(t)
flowModules(suite)
requestModules(suite)
sessionModules(suite)
