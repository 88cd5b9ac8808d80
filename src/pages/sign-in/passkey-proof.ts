import type { FastifyReply } from 'fastify'
import type { AppDeps } from '../../deps.ts'
import type { Passkey, Seconds, User } from '../../domain/model.ts'
import { type Parameters, single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import { addressPrefix } from '../../http/address-prefix.ts'
import { readAssertion } from '../../users/passkeys/browser-response.ts'
import { verifyAssertion } from '../../users/passkeys/passkeys.ts'
import { passkeyKind, usePasskey } from '../../users/rules/passkey.ts'
import { msg } from '../i18n/catalogue.ts'
import type { LoginForms } from './login-forms.ts'
import type { Pending } from './pending.ts'

/** A passkey that signed what it had to, and was used. */
export interface ShownPasskey {
  readonly passkey: Passkey
  readonly user: User
  /** The device made sure who holds it. */
  readonly ownerChecked: boolean
}

/**
 * Judges what a browser sent in place of a password, or of a code after it: the proof, or what to say. The challenge is
 * used up either way.
 * @param owner The user whose password was verified; absent: the passkey alone identifies the user.
 */
export type PasskeyProof = (
  pending: Pending,
  form: Parameters,
  reply: FastifyReply,
  now: Seconds,
  owner?: User,
) => Promise<ShownPasskey | Text>

/** Web Authentication §7.2 over a pending request of this browser. */
export function passkeyProof({ service, store }: AppDeps, forms: LoginForms): PasskeyProof {
  return async (pending, form, reply, now, owner) => {
    const { relyingParty } = service
    const sent = readAssertion(single(form, 'credential'))
    const challenge = await forms.takeChallenge(pending)
    if (sent === undefined || relyingParty === undefined) return msg('login.passkeyWrong')
    if (challenge === undefined) return msg('login.passkeyOutdated')
    const passkey = await store.find(passkeyKind, sent.id)
    const user = passkey && (await store.find('user', passkey.userId))
    if (passkey === undefined || user === undefined) return msg('login.passkeyUnknown')
    if (owner !== undefined && owner.id !== user.id) return msg('login.passkeyUnknown')
    const mode = owner === undefined ? 'alone' : 'second'
    const assertion = await verifyAssertion(relyingParty, sent, passkey, challenge, mode)
    if (assertion === undefined) return msg('login.passkeyWrong')
    const { counter, backedUp, ownerChecked } = assertion
    const shown = { counter, backedUp, from: addressPrefix(reply.request.ip) }
    const use = await store.transact(passkeyKind, passkey.id, (current) => usePasskey(current, shown, now))
    if (use === 'gone') return msg('login.passkeyUnknown')
    return use === 'copied' ? msg('login.passkeyCopied') : { passkey, user: owner ?? user, ownerChecked }
  }
}
