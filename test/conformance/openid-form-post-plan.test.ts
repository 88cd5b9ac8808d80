/**
 * The OpenID Foundation's form post certification plan: the modules of the basic plan with `response_mode=form_post`,
 * except those about scopes, which do not use the form. The suite's callback checks the form of every response.
 */
import t from 'tap'
import { startSuite } from '../helpers/openid-suite.ts'
import { flowModules } from './openid-flow.suite.ts'
import { requestModules } from './openid-requests.suite.ts'
import { sessionModules } from './openid-sessions.suite.ts'

const suite = await startSuite(t, 'form_post')

t.test('response_modes_supported has form_post', async (t) => {
  t.ok((suite.metadata['response_modes_supported'] as string[]).includes('form_post'))
})

flowModules(suite)
requestModules(suite)
sessionModules(suite)
