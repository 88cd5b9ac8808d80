import { OAuthError } from '../../domain/errors.ts'
import type { Mounts } from '../mount.ts'
import type { DevDeps } from '../plugin.ts'
import { profileOf, profiles } from './catalogue.ts'
import { Conduct, type Told } from './conduct.ts'
import { type OpenIssuer, openIssuer } from './open.ts'
import type { Profile } from './profile.ts'
import { listed, type Report, report } from './report.ts'

/** The misbehaving issuers of a development server. */
export class Issuers {
  readonly #conducts = new Map<string, Conduct>()
  readonly #opened = new Map<string, Promise<OpenIssuer>>()
  readonly #deps: DevDeps
  readonly #root: string
  readonly #outer: Mounts['outer']

  /** @param root The URL they live below. */
  constructor(deps: DevDeps, root: string, outer: Mounts['outer']) {
    this.#deps = deps
    this.#root = root
    this.#outer = outer
  }

  /** All there are. */
  list() {
    return profiles.map((profile) => listed(profile, this.#root))
  }

  /** What clients made of them. */
  report(): Report {
    const seen = new Map([...this.#conducts].map(([id, conduct]) => [id, conduct.seen()]))
    return report(this.#deps.config.issuer, this.#root, seen)
  }

  /** Takes a client's own word about a profile. @throws {OAuthError} 404 when there is no such profile. */
  tell(id: string, told: Told): void {
    const profile = profileOf(id)
    if (profile === undefined) {
      throw new OAuthError('invalid_request', 'there is no such profile', {
        rule: 'lychgate-dev-profile',
        status: 404,
      })
    }
    this.#conduct(profile).tell(told)
  }

  /** The application of this profile, made at the first request; undefined when there is no such profile. */
  async app(id: string): Promise<OpenIssuer['app'] | undefined> {
    const profile = profileOf(id)
    if (profile === undefined) return undefined
    const opening =
      this.#opened.get(id) ??
      openIssuer(profile, `${this.#root}/${id}`, this.#conduct(profile), this.#deps, this.#outer)
    this.#opened.set(id, opening)
    // The next request may have more luck.
    opening.catch(() => this.#opened.delete(id))
    return (await opening).app
  }

  /** Forgets what was seen; clients and users stay. */
  forget(): void {
    for (const conduct of this.#conducts.values()) conduct.clear()
  }

  /** Ends all of them. */
  async close(): Promise<void> {
    const ending = [...this.#opened.values()]
    this.#opened.clear()
    for (const opening of ending) await (await opening).close()
  }

  #conduct({ id, fooledWhen }: Profile): Conduct {
    const known = this.#conducts.get(id) ?? new Conduct(fooledWhen)
    this.#conducts.set(id, known)
    return known
  }
}
