import { type AuthMethod, authMethods, type Client, NotRegistered, redirectUri } from './clients.ts'
import type { LabOptions } from './flow.ts'
import { NotApplicable, NotRun, NotTestable } from './observation.ts'
import type { Values } from './values.ts'

/** Opens the clients of a run: each is registered when it is first asked for, or is one that the operator made. */
export function openPool({
  server,
  clients,
  provided,
  traits,
  documentUrl,
}: Pick<LabOptions, 'server' | 'clients' | 'provided' | 'traits' | 'documentUrl'>) {
  const registered = new Map<string, Promise<Client>>()

  /** The client of a name; `main` and `other` are two of the same kind. With metadata it is one that has them. */
  function client(name: 'main' | 'other' | AuthMethod = 'main', more: Values = {}): Promise<Client> {
    const isPair = name === 'main' || name === 'other'
    const fits = isPair ? traits.methods[0] : name
    // Without registration, the clients of the operator are all there are.
    const isAny = isPair && server.metadata['registration_endpoint'] === undefined
    const given = provided.filter(
      ({ method, metadata }) => (isAny || method === fits) && hasAll(metadata, more),
    )
    const one = given[name === 'other' ? 1 : 0]
    if (one !== undefined) return Promise.resolve(one)
    const kind = `${name} ${JSON.stringify(more)}`
    const pending =
      registered.get(kind) ?? (isPair ? registerFirst(traits.methods, more) : registerOnly(name, more))
    registered.set(kind, pending)
    return pending
  }

  /** @throws {NotRun} if only the operator can have such a client. */
  async function registerOnly(method: AuthMethod, more: Values): Promise<Client> {
    try {
      return await registerFirst([method], more)
    } catch (error) {
      if (error instanceof NotRegistered) throw new NotRun(`--client FILE for ${method}`, { cause: error })
      throw error
    }
  }

  async function registerFirst(methods: readonly AuthMethod[], more: Values): Promise<Client> {
    let failure: NotTestable | undefined
    for (const method of methods) {
      try {
        return await clients.register(method, {
          ...(traits.dpop && { dpop_bound_access_tokens: true }),
          ...more,
        })
      } catch (error) {
        // What was tried and failed says more than what is not offered.
        if (error instanceof NotTestable) failure ??= error
        else if (!(error instanceof NotApplicable)) throw error
      }
    }
    throw failure ?? new NotTestable('no client can be registered (--client FILE)')
  }

  /** A client that authenticates, by the first method that the server registers. With metadata it is one that has them. */
  function confidential(more: Values = {}): Promise<Client> {
    const method = authMethods
      .slice(1)
      .find((one) => server.supports('token_endpoint_auth_methods_supported', one))
    return client(traits.methods.includes('none') ? (method ?? 'client_secret_basic') : 'main', more)
  }

  /**
   * The client whose metadata are at a URL; its redirect URI is the one of this program.
   * @throws {NotRun} without --cimd.
   */
  async function documented(): Promise<Client> {
    if (documentUrl === undefined) throw new NotRun('--cimd URL')
    return { id: documentUrl, method: 'none', redirectUri, metadata: {} }
  }

  return { client, confidential, documented }
}

/** Whether metadata have these members, and of lists these elements. */
function hasAll(metadata: Values, wanted: Values): boolean {
  return Object.entries(wanted).every(([name, value]) =>
    [value].flat().every((one) => [metadata[name]].flat().includes(one)),
  )
}
