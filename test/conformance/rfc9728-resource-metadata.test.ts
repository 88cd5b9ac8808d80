import t from 'tap'
import { startServer } from '../helpers/server.ts'
import { assertRejected, challengeOf, json, startFlow } from '../helpers/wire.ts'

const { server, tokens } = await startFlow(t)
const { issuer } = server
const url = `${issuer}/.well-known/oauth-protected-resource`
const document = await json(await fetch(url))

t.test(
  '[service-4-prm-path] [rfc9728-2-resource] [rfc9728-3.3-resource-identical] [rfc9728-2-authorization-servers] the metadata of the API names it and its authorization server',
  async (t) => {
    const response = await fetch(url)
    t.equal(response.status, 200, '[service-4-prm-path]')
    t.match(response.headers.get('content-type'), /^application\/json/, '[rfc9728-3.2-ok-json]')
    t.equal(document['resource'], issuer, '[rfc9728-2-resource]')
    const found = `${document['resource']}/.well-known/oauth-protected-resource`
    t.equal(found, url, '[rfc9728-3.3-resource-identical]')
    t.strictSame(document['authorization_servers'], [issuer], '[rfc9728-2-authorization-servers]')
    const metadata = await json(await fetch(`${issuer}/.well-known/oauth-authorization-server`))
    t.equal(metadata['issuer'], issuer, '[mcp-discovery-prm-authorization-servers] it is there')
    t.strictSame(metadata['protected_resources'], [issuer], '[rfc9728-4-protected-resources]')
  },
)

t.test(
  '[rfc9728-2-scopes-supported] [rfc9728-2-bearer-methods] [rfc9728-2-resource-name] [rfc9728-3.2-zero-values-omitted] its members match the behaviour, and it has no others',
  async (t) => {
    t.strictSame(Object.keys(document).sort(), [
      'authorization_servers',
      'bearer_methods_supported',
      'resource',
      'resource_name',
      'scopes_supported',
    ])
    t.notOk('jwks_uri' in document, '[rfc9728-2-jwks-uri-https] responses are not signed')
    t.notOk('resource_signing_alg_values_supported' in document, '[rfc9728-2-no-none-alg]')
    const metadata = await json(await fetch(`${issuer}/.well-known/oauth-authorization-server`))
    t.strictSame(
      [...(document['scopes_supported'] as string[]), 'offline_access'],
      metadata['scopes_supported'],
    )
    t.strictSame(document['bearer_methods_supported'], ['header'])
    t.equal(document['resource_name'], server.deps.config.service.name)
    const { access_token: token } = await tokens({ scope: 'courses:read' })
    const inQuery = await fetch(`${issuer}/api/courses?access_token=${token}`)
    t.equal(inQuery.status, 200)
    t.equal((await json(inQuery))['caller'], 'anonymous')
    const inBody = await fetch(`${issuer}/api/courses`, {
      method: 'POST',
      body: new URLSearchParams({ access_token: token }),
    })
    await assertRejected(t, inBody, 'invalid_request', 415, 'a form is not read at all')
    const inHeader = await fetch(`${issuer}/api/courses`, { headers: { authorization: `Bearer ${token}` } })
    t.equal((await json(inHeader))['caller'], 'user')
    for (const [name, value] of Object.entries(document)) {
      const isFilled = typeof value === 'string' ? value !== '' : Array.isArray(value) && value.length > 0
      t.ok(isFilled, `[rfc9728-3.2-zero-values-omitted] ${name}`)
    }
  },
)

t.test(
  '[rfc8414-2-human-pages] [rfc9728-2-resource-name] links for users are in both documents if they are configured',
  async (t) => {
    const service = {
      name: 'Lessons',
      documentation: 'https://docs.example/',
      policy: 'https://example.com/policy',
      terms: 'https://example.com/terms',
    }
    const { issuer: other } = await startServer(t, { service })
    const resource = await json(await fetch(`${other}/.well-known/oauth-protected-resource`))
    t.strictSame(
      ['name', 'documentation', 'policy_uri', 'tos_uri'].map((member) => resource[`resource_${member}`]),
      Object.values(service),
    )
    for (const name of ['oauth-authorization-server', 'openid-configuration']) {
      const document = await json(await fetch(`${other}/.well-known/${name}`))
      t.equal(document['service_documentation'], service.documentation)
      t.equal(document['op_policy_uri'], service.policy)
      t.equal(document['op_tos_uri'], service.terms)
    }
  },
)

t.test(
  '[rfc9728-3-path-insertion] [rfc9728-4-protected-resources] [rfc9728-3.2-zero-values-omitted] a resource on the same origin has its document at its path, one elsewhere has none here',
  async (t) => {
    const origin = 'https://id.example.com'
    const issuer = `${origin}/t`
    const lessons = `${origin}/lessons`
    const elsewhere = 'https://elsewhere.example/api'
    const rest = { scopes: ['courses:read'], tokenFormat: 'opaque' as const }
    const own = await startServer(t, {
      issuer,
      resources: [
        { identifier: lessons, name: 'Lessons', ...{ 'name#de': 'Stunden' }, ...rest },
        { identifier: elsewhere, name: 'Elsewhere', ...rest },
        { identifier: `${origin}/bare`, name: 'Bare', ...rest, scopes: [] },
      ],
    })
    const at = (where: string) => fetch(`${own.origin}/.well-known/oauth-protected-resource${where}`)
    const document = await at('/lessons')
    t.equal(document.status, 200)
    t.strictSame(await json(document), {
      resource: lessons,
      authorization_servers: [issuer],
      scopes_supported: ['courses:read'],
      bearer_methods_supported: ['header'],
      resource_name: 'Lessons',
      'resource_name#de': 'Stunden',
    })
    const bare = await json(await at('/bare'))
    t.equal(bare['resource'], `${origin}/bare`)
    t.notOk('scopes_supported' in bare, 'an empty list is left out')
    t.equal((await json(await at('/t')))['resource'], issuer)
    t.equal((await at('/api')).status, 404)
    const metadata = await json(await fetch(`${own.origin}/.well-known/oauth-authorization-server/t`))
    t.strictSame(metadata['protected_resources'], [issuer, lessons, elsewhere, `${origin}/bare`])
  },
)

t.test('[rfc9728-5.1-resource-metadata-param] every error of the API points to this document', async (t) => {
  const { access_token: token } = await tokens()
  for (const bearer of ['garbage', token]) {
    const response = await fetch(`${issuer}/api/courses`, {
      headers: { authorization: `Bearer ${bearer}` },
    })
    const pointed = String(challengeOf(response).params['resource_metadata'])
    t.equal(pointed, url)
    t.equal((await fetch(pointed)).status, 200)
  }
})
