// The best durable adapter for oidc-provider we could write: one table, prepared statements, every write on disk
// before it is acknowledged, as Lychgate's are.
import Database from 'better-sqlite3'

/** An adapter class over this file, as oidc-provider wants one. */
export function durableAdapter(file) {
  const db = new Database(file)
  db.pragma('journal_mode = WAL')
  db.pragma('synchronous = FULL')
  db.pragma('locking_mode = EXCLUSIVE')
  db.exec(`create table if not exists records (
      name text not null, id text not null, payload text not null,
      grant_id text, uid text, user_code text, expires_at integer,
      primary key (name, id)) strict, without rowid;
    create index if not exists records_grant on records (grant_id) where grant_id is not null;
    create index if not exists records_uid on records (uid) where uid is not null;
    create index if not exists records_user_code on records (user_code) where user_code is not null;`)
  const put = db.prepare(`insert into records values (?, ?, ?, ?, ?, ?, ?)
    on conflict (name, id) do update set payload = excluded.payload, expires_at = excluded.expires_at`)
  const byId = db.prepare('select payload, expires_at from records where name = ? and id = ?')
  const byUid = db.prepare('select payload, expires_at from records where uid = ? and name = ?')
  const byCode = db.prepare('select payload, expires_at from records where user_code = ? and name = ?')
  const consume = db.prepare(
    `update records set payload = json_set(payload, '$.consumed', ?) where name = ? and id = ?`,
  )
  const remove = db.prepare('delete from records where name = ? and id = ?')
  const revoke = db.prepare('delete from records where grant_id = ?')
  const now = () => Math.floor(Date.now() / 1000)
  const alive = (row) =>
    row === undefined || (row.expires_at !== null && row.expires_at <= now())
      ? undefined
      : JSON.parse(row.payload)

  return class {
    constructor(name) {
      this.name = name
    }
    async upsert(id, payload, expiresIn) {
      const { grantId = null, uid = null, userCode = null } = payload
      put.run(
        this.name,
        id,
        JSON.stringify(payload),
        grantId,
        uid,
        userCode,
        expiresIn ? now() + expiresIn : null,
      )
    }
    async find(id) {
      return alive(byId.get(this.name, id))
    }
    async findByUid(uid) {
      return alive(byUid.get(uid, this.name))
    }
    async findByUserCode(code) {
      return alive(byCode.get(code, this.name))
    }
    async consume(id) {
      consume.run(now(), this.name, id)
    }
    async destroy(id) {
      remove.run(this.name, id)
    }
    async revokeByGrantId(grantId) {
      revoke.run(grantId)
    }
  }
}
