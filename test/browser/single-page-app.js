/** The script of a single-page application. It keeps its client in the browser, as it keeps its key. */
/* global oidc */
const app = {
  manager: undefined,

  /** Registers the application at the server, and returns its client id. */
  async register(issuer) {
    const configuration = await fetch(`${issuer}/.well-known/openid-configuration`)
    const { registration_endpoint } = await configuration.json()
    const response = await fetch(registration_endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        client_name: 'Course Board',
        redirect_uris: [`${location.origin}/callback`],
        token_endpoint_auth_method: 'none',
        dpop_bound_access_tokens: true,
      }),
    })
    const { client_id } = await response.json()
    sessionStorage.setItem('client', JSON.stringify({ authority: issuer, client_id }))
    app.start()
    return client_id
  },

  start() {
    const client = JSON.parse(sessionStorage.getItem('client'))
    if (client === null) return
    app.manager = new oidc.UserManager({
      ...client,
      redirect_uri: `${location.origin}/callback`,
      scope: 'openid profile courses:read',
      dpop: { store: new oidc.IndexedDbDPoPStore(), bind_authorization_code: true },
    })
  },

  /** Calls an API, once more if it asks for a nonce. */
  async call(url, scheme = 'DPoP') {
    const user = await app.manager.getUser()
    const send = async (nonce) => {
      const proof = await app.manager.dpopProof(url, user, 'GET', nonce)
      return fetch(url, { headers: { authorization: `${scheme} ${user.access_token}`, dpop: proof } })
    }
    const first = await send()
    const nonce = first.headers.get('dpop-nonce')
    const last = first.status === 401 && nonce !== null ? await send(nonce) : first
    return { statuses: [first.status, last.status], challenge: last.headers.get('www-authenticate') }
  },
}
app.start()
globalThis.app = app
