import { fapi2Plan } from './fapi2-plan.suite.ts'

await fapi2Plan('openid_connect')
