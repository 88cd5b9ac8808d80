import type { BrowserContext, CDPSession, Page } from 'playwright-core'

/** An authenticator of a browser, by the DevTools protocol: a device with a fingerprint reader. */
export interface VirtualAuthenticator {
  readonly session: CDPSession
  readonly authenticatorId: string
}

/** Gives a page a device that verifies its user at once and stores passkeys. */
export async function addAuthenticator(context: BrowserContext, page: Page): Promise<VirtualAuthenticator> {
  const session = await context.newCDPSession(page)
  await session.send('WebAuthn.enable')
  const { authenticatorId } = await session.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
  return { session, authenticatorId }
}
