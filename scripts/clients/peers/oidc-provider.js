// oidc-provider with its development pages and the features that clauses are about. Argument: the port.
import Provider from 'oidc-provider'

const port = Number(process.argv[2])
const enabled = { enabled: true }
const provider = new Provider(`http://localhost:${port}`, {
  pkce: { required: () => true },
  scopes: ['openid', 'offline_access', 'profile', 'email'],
  claims: { openid: ['sub'], profile: ['name'], email: ['email'] },
  clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'],
  features: {
    clientCredentials: enabled,
    deviceFlow: enabled,
    dPoP: enabled,
    introspection: enabled,
    jwtResponseModes: enabled,
    pushedAuthorizationRequests: enabled,
    registration: enabled,
    registrationManagement: enabled,
    requestObjects: enabled,
    resourceIndicators: enabled,
    revocation: enabled,
    rpInitiatedLogout: enabled,
  },
})
provider.listen(port, '127.0.0.1')
