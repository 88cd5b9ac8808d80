import { requireBody } from './json-body.ts'
import { TokenOrder, tokenMint } from './mint.ts'
import type { DevPart } from './plugin.ts'

/** Issues tokens without a sign-in or consent page. */
export const tokenRoutes: DevPart = async (app, deps) => {
  const mint = tokenMint(app, deps)
  app.post('/token', async (request) => mint(requireBody(TokenOrder, request.body), request.ip))
}
