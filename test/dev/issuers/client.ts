import type { ClientKey } from '../../helpers/assertions.ts'
import type { TestUser } from '../../helpers/user.ts'

export interface ServiceClient {
  readonly id: string
  readonly key: ClientKey
}

/** What a client is given: an issuer, a user with a browser, and the time of the server. */
export interface Surroundings {
  readonly issuer: string
  readonly user: TestUser
  /** A client that an operator arranged, known at every issuer by this key; it needs no user. */
  readonly service: ServiceClient
  /** Lets the access token of the first exchange age, and returns the new time. */
  readonly waitForExpiry?: () => Promise<number>
  /** The client is one for devices, too: it is approved before its first poll, never, or gives up after that poll. */
  readonly device?: 'approved' | 'waits' | 'gives up'
  /** Reports to the server what only the client knows. */
  readonly tell?: (outcome: 'rejected' | 'fooled') => Promise<void>
}

/** A client that goes from discovery to revocation, and stops where its library throws. */
export interface ClientUnderTest {
  readonly name: string
  readonly run: (surroundings: Surroundings, at: (step: string) => void) => Promise<void>
}

/** Where a run ended, and with which error. */
export interface Ending {
  readonly step: string
  /** Absent if the client completed the flow. */
  readonly error?: string
}

/** Runs a client against one issuer. */
export async function runClient(client: ClientUnderTest, surroundings: Surroundings): Promise<Ending> {
  let step = 'start'
  try {
    await client.run(surroundings, (next) => {
      step = next
    })
    return { step }
  } catch (error) {
    return { step, error: reasonOf(error).replaceAll(surroundings.issuer, '{issuer}') }
  }
}

/** The innermost reason: libraries wrap what they found into something general. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.cause instanceof Error) return reasonOf(error.cause)
  return 'issues' in error ? issuesOf(error.issues) : error.message
}

/** The problems that a zod schema found. */
function issuesOf(issues: unknown): string {
  if (!Array.isArray(issues)) return String(issues)
  return issues
    .map(({ path, message }: { path: readonly string[]; message: string }) => `${path.join('.')}: ${message}`)
    .join('; ')
}
