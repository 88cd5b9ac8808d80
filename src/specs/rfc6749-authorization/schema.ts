import { Type } from '@sinclair/typebox'
import type { Declared } from '../../feature/deps.ts'
import { repeatable } from '../../feature/feature.ts'

const text = (description: string) => Type.Optional(Type.String({ description }))

/**
 * RFC 6749 §4.1.1, RFC 7636 §4.3, RFC 8707 §2 and OpenID Connect Core §3.1.2.1. What is missing or wrong is judged by
 * the domain. What is not here is ignored, RFC 6749 §3.1, and so is what is here only to be described,
 * OpenID Connect Core §15.1 and OpenID Connect Core §5.2.
 */
export const authorizationParameters = {
  response_type: text('code'),
  client_id: text('The client identifier issued at registration.'),
  redirect_uri: text('A registered redirect URI; the port of a loopback one is free.'),
  scope: text('Scope names separated by spaces.'),
  state: text('Returned unchanged.'),
  code_challenge: text('S256 challenge of the verifier, RFC 7636 §4.2.'),
  code_challenge_method: text('S256'),
  resource: repeatable('The APIs the tokens are for, RFC 8707.'),
  response_mode: text('How the response reaches the redirect URI; response_modes_supported lists them.'),
  nonce: text('Returned in the ID Token.'),
  prompt: text('none, login, consent, select_account.'),
  max_age: text('The greatest acceptable age of the sign-in, in seconds.'),
  login_hint: text('The name to fill in on the sign-in page.'),
  id_token_hint: text('An ID Token of the user that the response must be about.'),
  claims: text('Individually requested claims, as JSON.'),
  ui_locales: text('Languages, by preference.'),
  display: text('Accepted and ignored.'),
  acr_values: text(
    'Context classes, the most wanted first: a user who can sign in that way is asked to. acr in the ID Token is the class of the sign-in.',
  ),
}

/** The grant types of RFC 6749 §4.1.3 and §6, with their parameters. */
export const grantTypes = {
  authorization_code: {
    title: 'code exchange',
    parameters: {
      code: text('authorization_code: the code.'),
      redirect_uri: text('authorization_code: the redirect URI of the authorization request.'),
      code_verifier: text('authorization_code: the PKCE verifier.'),
    },
  },
  refresh_token: {
    title: 'refresh',
    parameters: { refresh_token: text('refresh_token: the current refresh token.') },
  },
}

/** What any grant type may read. */
export const tokenParameters = {
  scope: text('A part of what was granted to the client.'),
  resource: repeatable('The APIs the token is for: a part of what was granted, RFC 8707.'),
}

/** The methods of RFC 7591 §2 without a method of its own for signing. */
export const clientAuthentication = {
  none: {},
  client_secret_post: {
    usesSecret: true,
    parameters: { client_secret: text('Clients registered with client_secret_post.') },
  },
  client_secret_basic: { usesSecret: true },
} as const

/** Describes the form of the token endpoint; what is not in it is ignored, RFC 6749 §3.2. */
export function tokenRequest({ grantTypes, tokenParameters, authenticationParameters }: Declared) {
  return Type.Object({
    grant_type: text(`${Object.keys(grantTypes).join(' or ')}.`),
    ...tokenParameters,
    client_id: text(
      'Required unless the client authenticates with HTTP Basic; a public client may leave it out when refreshing.',
    ),
    ...authenticationParameters,
  })
}

/** Describes the response of the token endpoint, RFC 6749 §5.1. */
export function tokenResponse({ tokenMembers, tokenBindings }: Declared) {
  const tokenTypes = ['Bearer', ...Object.values(tokenBindings).map(({ tokenType }) => tokenType)]
  return Type.Object(
    {
      access_token: Type.String(),
      token_type: Type.Union(tokenTypes.map((name) => Type.Literal(name))),
      expires_in: Type.Integer({ description: 'Seconds.' }),
      refresh_token: Type.Optional(Type.String()),
      scope: Type.String(),
      ...tokenMembers,
    },
    { title: 'Tokens', description: 'The token response, RFC 6749 §5.1.', additionalProperties: false },
  )
}
