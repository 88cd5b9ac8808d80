import type { Passkey, User } from '../../domain/model.ts'
import { single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import type { Needs } from '../../feature/deps.ts'
import { addressPrefix } from '../../http/address-prefix.ts'
import { readAssertion } from '../../users/passkeys/browser-response.ts'
import { verifyAssertion } from '../../users/passkeys/passkeys.ts'
import { passkeyKind, usePasskey } from '../../users/rules/passkey.ts'
import { msg } from '../i18n/i18n.ts'
import type { LoginForms } from './login-forms.ts'
import type { Pending } from './pending.ts'

/** A passkey that signed the challenge, and was counted as used. */
export interface ShownPasskey {
  readonly passkey: Passkey
  readonly user: User
  /** Whether the device verified its user. */
  readonly ownerChecked: boolean
}

/**
 * Verifies the passkey of a form, Web Authentication §7.2, or returns the problem with it. The challenge is used up
 * either way.
 * @param owner The user whose password was verified; absent: the passkey alone identifies the user.
 */
export type PasskeyProof = (pending: Pending, owner?: User) => Promise<ShownPasskey | Text>

/** Verifies passkeys for pending requests of this browser. */
export function passkeyProof(
  { service, store }: Needs<'store' | 'service'>,
  forms: LoginForms,
): PasskeyProof {
  return async (pending, owner) => {
    const { sent, reply, now } = pending
    const { relyingParty } = service
    const credential = readAssertion(single(sent, 'credential'))
    const challenge = await forms.takeChallenge(pending)
    if (credential === undefined || relyingParty === undefined) return msg('login.passkeyWrong')
    if (challenge === undefined) return msg('login.passkeyOutdated')
    const passkey = await store.find(passkeyKind, credential.id)
    const user = passkey && (await store.find('user', passkey.userId))
    if (passkey === undefined || user === undefined) return msg('login.passkeyUnknown')
    if (owner !== undefined && owner.id !== user.id) return msg('login.passkeyUnknown')
    const mode = owner === undefined ? 'alone' : 'second'
    const assertion = await verifyAssertion(relyingParty, credential, passkey, challenge, mode)
    if (assertion === undefined) return msg('login.passkeyWrong')
    const { counter, backedUp, ownerChecked } = assertion
    const shown = { counter, backedUp, from: addressPrefix(reply.request.ip) }
    const use = await store.transact(passkeyKind, passkey.id, (current) => usePasskey(current, shown, now))
    if (use === 'gone') return msg('login.passkeyUnknown')
    return use === 'copied' ? msg('login.passkeyCopied') : { passkey, user: owner ?? user, ownerChecked }
  }
}
