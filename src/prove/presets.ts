/** How to sign in and decide on the pages of a server. A recording has names of fields, and never a password. */
export interface Recording {
  readonly name: string
  /** The page where the user signs in: the form that has this field. */
  readonly signIn: { readonly username: string; readonly password: string; readonly press?: string }
  /** The page where the user approves: the form that has this field, and the buttons of both decisions. */
  readonly consent: {
    readonly has: string
    readonly approve?: Button
    /** The button, or what the link that denies leads to. */
    readonly deny?: Button | { readonly link: string }
  }
  /** A user that such a server has when it is started for a trial. */
  readonly user?: { readonly username: string; readonly password: string }
}

interface Button {
  readonly name: string
  readonly value: string
}

/** Recordings of servers that were tried; others are recognised by their password field and the text of their buttons. */
export const presets: readonly Recording[] = [
  {
    name: 'lychgate',
    signIn: { username: 'username', password: 'password' },
    consent: {
      has: 'interaction',
      approve: { name: 'decision', value: 'approve' },
      deny: { name: 'decision', value: 'deny' },
    },
    user: { username: 'alice', password: 'alice-in-dev' },
  },
  {
    name: 'oidc-provider',
    signIn: { username: 'login', password: 'password' },
    consent: { has: 'prompt', deny: { link: '/abort$' } },
    user: { username: 'alice', password: 'any' },
  },
]
