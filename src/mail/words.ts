import type { Seconds } from '../domain/model.ts'
import type { LetterFacts } from './letters.ts'

/** A letter's sentences, ready to read. */
export interface Words {
  readonly language: string
  readonly subject: string
  readonly greeting: string
  readonly reason: string
  readonly button: string
  readonly notes: readonly string[]
}

/** The sentences of a letter about this link. */
export function wordsOf({ purpose, service, account, seconds }: LetterFacts): Words {
  const name = String(account.claims['name'] ?? account.username)
  const language = 'en'
  const once = `The link works once, for ${duration(seconds, language)}.`
  switch (purpose) {
    case 'invitation':
      return {
        language,
        subject: `Your invitation to ${service}`,
        greeting: `Hello ${name},`,
        reason: `you are invited to ${service}. Choose a password to begin:`,
        button: 'Accept the invitation',
        notes: [once, 'If you do not know what this is about, leave it: nothing happens.'],
      }
    case 'password-reset':
      return {
        language,
        subject: `A new password for ${service}`,
        greeting: `Hello ${name},`,
        reason: `somebody asked for a new password for your account ${account.username} at ${service}. Choose one here:`,
        button: 'Choose a new password',
        notes: [once, 'If it was not you, leave this letter: your password stays as it is.'],
      }
    case 'email-verification':
      return {
        language,
        subject: `Confirm your e-mail address for ${service}`,
        greeting: `Hello ${name},`,
        reason: `please confirm that this address belongs to your account ${account.username} at ${service}:`,
        button: 'Confirm the address',
        notes: [once, 'If you have no such account, leave this letter: nothing happens.'],
      }
  }
}

const units = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
] as const

/** `7 days`, in any language. */
function duration(seconds: Seconds, language: string): string {
  const [unit, size] = units.find(([, length]) => seconds >= length) ?? (['second', 1] as const)
  const format = new Intl.NumberFormat(language, { style: 'unit', unit, unitDisplay: 'long' })
  return format.format(Math.floor(seconds / size))
}
