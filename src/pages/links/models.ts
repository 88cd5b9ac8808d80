import type { Seconds } from '../../domain/model.ts'
import type { Text } from '../../domain/text.ts'

/** A form that a one-time link opens: the user's name, and the password they choose. */
export interface LinkPasswordPage {
  readonly action: string
  readonly hidden: Readonly<Record<string, string>>
  readonly purpose: 'first-person' | 'invitation' | 'password-reset' | 'email-undo'
  /** Whose it is; absent: they say it themselves. */
  readonly username?: string
  /** The address that comes back with `email-undo`. */
  readonly email?: string
  /** What was typed before, or is known. */
  readonly typed: { readonly username: string; readonly email: string; readonly name: string }
  readonly problem?: Text
}

/** Whether an address is theirs; opening the link alone says nothing, for programs open links, too. */
export interface LinkEmailPage {
  readonly action: string
  readonly hidden: Readonly<Record<string, string>>
  readonly email: string
  readonly username: string
}

/** What a link has done, and where it goes on. */
export interface LinkDonePage {
  readonly title: Text
  readonly about: Text
  readonly link: { readonly url: string; readonly label: Text }
}

export interface ForgotPasswordPage {
  readonly action: string
  readonly hidden: Readonly<Record<string, string>>
  /** Back to the sign-in that waits. */
  readonly backUrl?: string
}

/** The same whether there is such an account or not. */
export interface EmailOnItsWayPage {
  /** For how long the link in it works. */
  readonly seconds: Seconds
  readonly backUrl?: string
}
