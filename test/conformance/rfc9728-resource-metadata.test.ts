import t from 'tap'
import { startServer } from '../helpers/server.ts'
import { challengeOf, json, startFlow } from '../helpers/wire.ts'

const { server, tokens } = await startFlow(t)
const { issuer } = server
const url = `${issuer}/.well-known/oauth-protected-resource`
const document = await json(await fetch(url))

t.test(
  '[seed-4-prm-path] [rfc9728-3.2-ok-json] [rfc9728-2-resource] [rfc9728-3.3-resource-identical] [rfc9728-2-authorization-servers] [mcp-discovery-prm-authorization-servers] [rfc9728-4-protected-resources] the metadata of the API names it and its authorization server',
  async (t) => {
    const response = await fetch(url)
    t.equal(response.status, 200)
    t.match(response.headers.get('content-type'), /^application\/json/)
    t.equal(document['resource'], issuer)
    t.equal(`${document['resource']}/.well-known/oauth-protected-resource`, url)
    t.strictSame(document['authorization_servers'], [issuer])
    const metadata = await json(await fetch(`${issuer}/.well-known/oauth-authorization-server`))
    t.equal(metadata['issuer'], issuer)
    t.strictSame(metadata['protected_resources'], [issuer])
  },
)

t.test(
  '[rfc9728-2-scopes-supported] [rfc9728-2-bearer-methods] [rfc9728-2-resource-name] [rfc9728-2-jwks-uri-https] [rfc9728-2-no-none-alg] [rfc9728-3.2-zero-values-omitted] its members are what is really so, and there are no others',
  async (t) => {
    t.strictSame(Object.keys(document).sort(), [
      'authorization_servers',
      'bearer_methods_supported',
      'resource',
      'resource_name',
      'scopes_supported',
    ])
    const metadata = await json(await fetch(`${issuer}/.well-known/oauth-authorization-server`))
    t.strictSame(document['scopes_supported'], metadata['scopes_supported'])
    t.strictSame(document['bearer_methods_supported'], ['header'])
    t.equal(document['resource_name'], server.deps.config.service.name)
    const { access_token: token } = await tokens({ scope: 'courses:read' })
    const inQuery = await fetch(`${issuer}/api/courses?access_token=${token}`)
    t.match(await json(inQuery), { caller: 'anonymous' })
    const inBody = await fetch(`${issuer}/api/courses`, {
      method: 'POST',
      body: new URLSearchParams({ access_token: token }),
    })
    t.notMatch(await inBody.text(), 'person')
  },
)

t.test(
  '[rfc8414-2-human-pages] [rfc9728-2-resource-name] links for people stand in both documents when they are configured',
  async (t) => {
    const service = {
      name: 'Lessons',
      documentation: 'https://docs.example/',
      policy: 'https://example.com/policy',
      terms: 'https://example.com/terms',
    }
    const { issuer: other } = await startServer(t, { service })
    const resource = await json(await fetch(`${other}/.well-known/oauth-protected-resource`))
    t.match(resource, {
      resource_name: 'Lessons',
      resource_documentation: service.documentation,
      resource_policy_uri: service.policy,
      resource_tos_uri: service.terms,
    })
    for (const name of ['oauth-authorization-server', 'openid-configuration']) {
      t.match(await json(await fetch(`${other}/.well-known/${name}`)), {
        service_documentation: service.documentation,
        op_policy_uri: service.policy,
        op_tos_uri: service.terms,
      })
    }
  },
)

t.test(
  '[rfc9728-3-path-insertion] [rfc9728-4-protected-resources] a resource on the same origin has its document at its path, one elsewhere has none here',
  async (t) => {
    const origin = 'https://id.example.com'
    const issuer = `${origin}/t`
    const lessons = `${origin}/lessons`
    const elsewhere = 'https://elsewhere.example/api'
    const rest = { scopes: ['courses:read'], tokenFormat: 'opaque' as const }
    const own = await startServer(t, {
      issuer,
      resources: [
        { identifier: lessons, name: 'Lessons', ...rest },
        { identifier: elsewhere, name: 'Elsewhere', ...rest },
      ],
    })
    const at = (where: string) => fetch(`${own.origin}/.well-known/oauth-protected-resource${where}`)
    t.match(await json(await at('/lessons')), {
      resource: lessons,
      authorization_servers: [issuer],
      scopes_supported: ['courses:read'],
      resource_name: 'Lessons',
    })
    t.match(await json(await at('/t')), { resource: issuer })
    t.equal((await at('/api')).status, 404)
    const metadata = await json(await fetch(`${own.origin}/.well-known/oauth-authorization-server/t`))
    t.strictSame(metadata['protected_resources'], [issuer, lessons, elsewhere])
  },
)

t.test(
  '[rfc9728-5.1-resource-metadata-param] every refusal of the API points to this document',
  async (t) => {
    const { access_token: token } = await tokens()
    for (const bearer of ['garbage', token]) {
      const response = await fetch(`${issuer}/api/courses`, {
        headers: { authorization: `Bearer ${bearer}` },
      })
      const pointed = String(challengeOf(response).params['resource_metadata'])
      t.equal(pointed, url)
      t.equal((await fetch(pointed)).status, 200)
    }
  },
)
