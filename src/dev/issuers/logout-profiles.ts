import { onlyReported } from './criteria.ts'
import { type Profile, profilesOf } from './profile.ts'

/** The logout token for a client is wrong, OpenID Connect Back-Channel Logout §2.4. */
export const logoutTokens: readonly Profile[] = profilesOf(
  {
    text: 'it responds to that logout token with 200 or 204',
    isMet: (_wrong, { place, status }) => place === 'logout-response' && status < 300,
  },
  {
    'logout-token-with-nonce': {
      ledger: 'oidc-bcl-2.4-no-nonce',
      title: 'the logout token has a nonce, as an ID Token',
      sound:
        'rejects it with 400: an ID Token must not sign a user out, OpenID Connect Back-Channel Logout §2.6',
      alterLogout: (claims) => ({ ...claims, nonce: 'a nonce' }),
    },
    'logout-token-without-event': {
      ledger: 'oidc-bcl-2.4-events',
      title: 'the logout token has no events',
      sound:
        'rejects it with 400: nothing says that it is about a logout, OpenID Connect Back-Channel Logout §2.6',
      alterLogout: ({ events: _, ...claims }) => claims,
    },
    'logout-token-other-audience': {
      ledger: 'oidc-bcl-2.4-aud',
      title: 'the logout token is for another client',
      sound: 'rejects it with 400: aud is not its client_id, OpenID Connect Back-Channel Logout §2.6',
      alterLogout: (claims) => ({ ...claims, aud: 'client_somebody_else' }),
    },
    'logout-token-wrong-sid': {
      ledger: 'oidc-bcl-2.4-sub-or-sid',
      title: 'sid in the logout token is that of another session',
      sound: 'ends the session with that sid, if it has one, and no other session of the user',
      fooledWhen: onlyReported,
      alterLogout: (claims) => ({ ...claims, sid: 'another-session' }),
    },
  },
)
