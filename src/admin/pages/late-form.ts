import type { FastifyInstance, FastifyRequest } from 'fastify'
import { insert } from '../../domain/decision.ts'
import type { Hash, Seconds } from '../../domain/model.ts'
import { every, type Parameters, single } from '../../domain/parameters.ts'
import { recordKind } from '../../domain/record.ts'
import { hashSecret } from '../../domain/secret.ts'
import type { Value } from '../../domain/text.ts'
import type { Needs } from '../../feature/deps.ts'

/**
 * The fields of a form with their labels: they are kept when the form comes too late. One without a label is not shown.
 * A field that may contain a secret is not listed.
 */
export type KeptFields = Readonly<Record<string, Value | undefined>>

/** What was typed into a form whose sender had to sign in first. */
interface LateForm {
  readonly id: string
  /** Of the browser that sent it: no other one gets it back. */
  readonly browserHash: Hash
  readonly path: string
  readonly form: Parameters
  readonly expiresAt: Seconds
}

const lateFormKind = recordKind<LateForm>('admin-form', {
  id: ({ id }) => id,
  expiresAt: ({ expiresAt }) => expiresAt,
})

/** Stores what was typed, for as long as a sign-in may take, and returns where the page shows it again. */
export async function keepForm(
  { config, store, clock, random }: Needs<'config' | 'store' | 'clock' | 'random'>,
  path: string,
  typed: { readonly form: Parameters; readonly fields: KeptFields; readonly browserSecret: string },
): Promise<string> {
  const pairs = Object.keys(typed.fields).flatMap((name) => {
    const value = typed.form[name]
    return value === undefined ? [] : [[name, value] as const]
  })
  const id = random(16).toString('base64url')
  const late = {
    id,
    browserHash: hashSecret(typed.browserSecret),
    path,
    form: Object.fromEntries(pairs),
    expiresAt: clock() + config.lifetimes.interactionSeconds,
  }
  await store.write(insert(lateFormKind, late))
  return `${path}?done=kept&form=${id}`
}

/** Returns what this browser typed into the form of this page before its user signed in. */
export async function keptForm(
  app: FastifyInstance,
  { store }: Needs<'store'>,
  request: FastifyRequest,
  at: { readonly query: Parameters; readonly path: string; readonly now: Seconds },
): Promise<Parameters> {
  const id = single(at.query, 'form') ?? ''
  const browserSecret = app.browser.secret(request)
  const late = /^[\w-]{22}$/.test(id) ? await store.find(lateFormKind, id) : undefined
  if (late === undefined || browserSecret === undefined) return {}
  const isOwn = late.browserHash === hashSecret(browserSecret)
  return isOwn && late.path === at.path && at.now < late.expiresAt ? late.form : {}
}

/** Returns what was typed, as a form that shows something else repeats it. */
export function typedLines(form: Parameters, fields: KeptFields) {
  return Object.entries(fields).flatMap(([name, label]) => {
    const values = every(form, name)
    return label === undefined || values.length === 0 ? [] : [{ label, values }]
  })
}
