// oidc-provider's own memory adapter forgets all but the last thousand records, the person's session among them: this
// one does the same work on plain maps and forgets nothing.

/** An adapter class in memory, as oidc-provider wants one. */
export function memoryAdapter() {
  const records = new Map()
  const ofGrant = new Map()
  const now = () => Math.floor(Date.now() / 1000)
  const alive = (record) =>
    record === undefined || (record.expiresAt !== undefined && record.expiresAt <= now())
      ? undefined
      : record.payload

  return class {
    constructor(name) {
      this.name = name
    }
    key(id) {
      return `${this.name} ${id}`
    }
    async upsert(id, payload, expiresIn) {
      const key = this.key(id)
      records.set(key, { payload, ...(expiresIn && { expiresAt: now() + expiresIn }) })
      if (payload.uid !== undefined) records.set(this.key(`uid ${payload.uid}`), records.get(key))
      if (payload.grantId === undefined) return
      if (!ofGrant.has(payload.grantId)) ofGrant.set(payload.grantId, new Set())
      ofGrant.get(payload.grantId).add(key)
    }
    async find(id) {
      return alive(records.get(this.key(id)))
    }
    async findByUid(uid) {
      return alive(records.get(this.key(`uid ${uid}`)))
    }
    async findByUserCode() {
      return undefined
    }
    async consume(id) {
      const record = records.get(this.key(id))
      if (record) record.payload.consumed = now()
    }
    async destroy(id) {
      records.delete(this.key(id))
    }
    async revokeByGrantId(grantId) {
      for (const key of ofGrant.get(grantId) ?? []) records.delete(key)
      ofGrant.delete(grantId)
    }
  }
}
