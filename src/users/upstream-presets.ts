import type { Upstream } from './upstream-members.ts'

/** What a well-known server needs, for the form and the command that add an upstream. */
export interface UpstreamPreset {
  readonly name: string
  /** What its capitals stand for has to be filled in. */
  readonly issuer: string
  readonly members?: Partial<Upstream>
  /** Where this server is registered there, and what is different there. */
  readonly advice: string
}

/** The well-known servers, by the name that a command takes. */
export const upstreamPresets: Readonly<Record<string, UpstreamPreset>> = {
  google: {
    name: 'Google',
    issuer: 'https://accounts.google.com',
    advice:
      'Google Cloud console, Credentials, OAuth client ID, Web application. Every Google account can sign in there: for the users of one company choose the first sign-in by domain.',
  },
  microsoft: {
    name: 'Microsoft',
    issuer: 'https://login.microsoftonline.com/TENANT/v2.0',
    advice:
      'Entra admin center, App registrations, platform Web. TENANT is the id of your directory (a UUID). It says of no address that it is verified, so the first sign-in by domain gives no one an account.',
  },
  gitlab: {
    name: 'GitLab',
    issuer: 'https://gitlab.com',
    members: { groupsClaim: 'groups_direct' },
    advice:
      'Applications in the settings of a user, a group or the server, confidential, with the scopes openid, profile and email. Your own GitLab has its URL as issuer.',
  },
  keycloak: {
    name: 'Keycloak',
    issuer: 'https://HOST/realms/REALM',
    advice:
      'Clients of the realm, with client authentication and the standard flow. For groups add a mapper of group membership to the claim groups, without the full path.',
  },
  lychgate: {
    name: 'Lychgate',
    issuer: 'https://HOST',
    members: { scope: 'openid profile email groups' },
    advice: 'lychgate client add, with the redirect URI.',
  },
}

/** Returns the issuer of a preset, if it is one as it stands. */
export function issuerOf({ issuer }: UpstreamPreset): string | undefined {
  return /[A-Z]/.test(issuer) ? undefined : issuer
}
