import type { Seconds } from '../domain/model.ts'
import type { Text } from '../domain/text.ts'
import type {
  EmailOnItsWayPage,
  ForgotPasswordPage,
  LinkDonePage,
  LinkEmailPage,
  LinkPasswordPage,
} from './links/models.ts'
import type { ConsentArea, ConsentScope } from './sign-in/consent-models.ts'

/** What each server-rendered page shows. Values are plain text: the templates escape them. */
export interface Pages {
  login: LoginPage
  'select-account': SelectAccountPage
  'second-factor': SecondFactorPage
  consent: ConsentPage
  logout: LogoutPage
  'signed-out': SignedOutPage
  'link-password': LinkPasswordPage
  'link-email': LinkEmailPage
  'link-done': LinkDonePage
  'forgot-password': ForgotPasswordPage
  'email-on-its-way': EmailOnItsWayPage
  'form-post': FormPostPage
  error: ErrorPage
  home: HomePage
}

export interface LoginPage {
  /** Where the form posts to. */
  readonly action: string
  /** Opaque form fields that must come back: interaction handle and CSRF token. */
  readonly hidden: Readonly<Record<string, string>>
  /** The client's name, or undefined when it has none. */
  readonly clientName?: string
  /** `login_hint`, or what was typed before. */
  readonly username?: string
  /** What went wrong with the last attempt. */
  readonly problem?: Text
  /** The user is signed in and has to prove it again. */
  readonly again: boolean
  readonly passkey?: PasskeyRequest
  /** Where an email with a link to a new password is requested; absent if no email can be sent. */
  readonly forgotUrl?: string
  /** Who can be signed in as by pressing a button, on a development server. */
  readonly people?: readonly { readonly name: string; readonly username: string }[]
}

/** What the script of the page asks the browser for, Web Authentication Level 3 §5.5, as JSON. */
export interface PasskeyRequest {
  readonly options: string
}

/** What follows the password. */
export interface SecondFactorPage {
  readonly action: string
  readonly hidden: Readonly<Record<string, string>>
  readonly clientName?: string
  readonly user: { readonly name: string; readonly username: string }
  /** Signs in as another user. */
  readonly anotherUrl: string
  /** What may be typed; absent: nothing, only a passkey will do. */
  readonly codes?: 'one-time' | 'recovery'
  /** The same page for the other kind of code. */
  readonly insteadUrl?: string
  readonly passkey?: PasskeyRequest
  readonly problem?: Text
}

export interface SelectAccountPage {
  readonly action: string
  readonly hidden: Readonly<Record<string, string>>
  readonly clientName?: string
  /** Signed in in this browser now; who is in charge first. */
  readonly people: readonly { readonly id: string; readonly name: string; readonly username: string }[]
}

export interface ConsentPage {
  readonly action: string
  readonly hidden: Readonly<Record<string, string>>
  /** GET this to see the same page with only read access ticked; absent when nothing can be changed anyway. */
  readonly onlyReadUrl?: string
  readonly allUrl?: string
  readonly user: { readonly name: string; readonly username: string }
  /** Switch account: a link to the sign-in page of this interaction. */
  readonly switchUrl: string
  readonly client: {
    readonly name?: string
    readonly id: string
    /** The client registered itself: its name is self-asserted, RFC 7591 §5. */
    readonly selfRegistered: boolean
    readonly registeredAgoSeconds: Seconds
    /** "from this computer", "from the network 203.0.113.0/24"; absent when it is not known. */
    readonly registeredFrom?: Text
    /** Where the user is sent back to, as shown. */
    readonly redirectUri: string
    readonly redirectHost: string
    /** The redirect goes to this very computer. */
    readonly loopback: boolean
    /** http(s) links, to be shown with their host; never fetched. */
    readonly links: readonly { readonly label: Text; readonly url: string; readonly host: string }[]
  }
  /** Who the access is for, when it is not only the service itself. */
  readonly resources: readonly { readonly name: string; readonly identifier: string }[]
  /** openid, profile, email and their like. */
  readonly identity: readonly ConsentScope[]
  readonly areas: readonly ConsentArea[]
  /** The client changed what this page shows since the user last saw it. */
  readonly changed: boolean
  /** The rest was allowed before and stays allowed. */
  readonly onlyNew: boolean
  /** Undefined when nothing outlives the access token. */
  readonly accessLastsSeconds?: Seconds
  /** The user's own page, where access is taken back; absent when there is none. */
  readonly accountUrl?: string
}

export interface LogoutPage {
  readonly action: string
  readonly hidden: Readonly<Record<string, string>>
  /** Absent if no user is signed in in this browser. */
  readonly user?: { readonly name: string; readonly username: string }
  readonly clientName?: string
}

export interface SignedOutPage {
  readonly clientName?: string
}

/** OAuth 2.0 Form Post Response Mode: posted by script, or by the button where there is none. */
export interface FormPostPage {
  readonly redirectUri: string
  readonly redirectHost: string
  readonly members: readonly { readonly name: string; readonly value: string }[]
}

export interface ErrorPage {
  readonly status: number
  /** A short sentence for users. */
  readonly title: Text
  /** What the user can do now. */
  readonly advice: Text
  /** For the developer of the client: OAuth error code and description. */
  readonly code: string
  readonly description: string
  readonly requestId: string
  /** Where a development server shows what it did with the request. */
  readonly traceUrl?: string
  /** Present when going there can help, with its label. */
  readonly link?: { readonly url: string; readonly label: Text }
  /** Seconds after which trying again makes sense. */
  readonly retryAfterSeconds?: Seconds
}

export interface HomePage {
  readonly issuer: string
  readonly links: readonly { readonly label: Text; readonly url: string }[]
}
