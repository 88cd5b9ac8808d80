/** The targets of the project. The benchmarks print each figure with its target. */

/** CPU of oidc-provider divided by ours, at least. */
export const timesLessThanPeer: Readonly<Record<string, number>> = {
  discovery: 3.5,
  keys: 3.5,
  authorize: 18,
  'code exchange': 8,
  'code flow': 12,
  refresh: 15,
  'refresh, ES256 ID Token': 10,
  introspection: 4.5,
  UserInfo: 5,
  revocation: 5,
  registration: 8,
}

/** Our CPU divided by that of a bare Fastify which serves the same shape, at most. */
export const timesFloor: Readonly<Record<string, number>> = {
  discovery: 1.3,
  keys: 1.3,
  introspection: 2.2,
  UserInfo: 2.4,
  'API call': 2.4,
  refresh: 2.6,
}

/**
 * A call with a DPoP proof: at most the CPU of a call with a Bearer token, of verifying the proof, of importing its key,
 * and this.
 */
export const dpopMicroseconds = 40

/** The CPU of the question of a proxy, whose assertion is reused, divided by that of a UserInfo request, at most. */
export const timesUserInfo = 1.5

/** Past capacity. */
export const overload = {
  /** Percent of the best rate that is served at least. */
  served: 80,
  servedP99: 100,
  rejectedP99: 50,
}

/** From few grants to many: CPU of an operation, at most times. */
export const timesGrowth = 1.1
/** Bytes of a grant in the database, at most. */
export const bytesAGrant = 200

/** The executable: milliseconds to its first response, and MiB with one worker. */
export const executable = { start: 200, idle: 85, loaded: 130 }

/** Several workers: CPU of an operation in all processes, at most times that of one. */
export const timesOneWorker = 1.1
