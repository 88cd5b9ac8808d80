import type { AuthorizationRequest, PageRequest, User } from '../../domain/model.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Only a development server has them. */
    readonly shortcuts?: Shortcuts
  }
}

/** What spares a developer signing in and agreeing, over and over. */
export interface Shortcuts {
  /** Who is signed in as by pressing a button. */
  people(): Promise<readonly User[]>
  /** Who is signed in for this request without any page. */
  signsIn(request: AuthorizationRequest | PageRequest): Promise<User | undefined>
  /** Everything that is asked for is agreed to without any page. */
  readonly agrees: boolean
}
