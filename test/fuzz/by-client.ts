import type { Dice } from './dice.ts'
import { basic, type Draft, type Pair } from './request.ts'
import type { LiveClient, World } from './world.ts'

/** A form as this client sends it, with its secret. */
export function byClient({ id, secret, method }: LiveClient, path: string, fields: readonly Pair[]): Draft {
  if (method === 'client_secret_basic') {
    return { method: 'POST', path, query: [], headers: [basic(id, secret ?? '')], form: fields }
  }
  const own: Pair[] = [
    ['client_id', id],
    ...(secret === undefined ? [] : [['client_secret', secret] as const]),
  ]
  return { method: 'POST', path, query: [], headers: [], form: [...fields, ...own] }
}

/** Usually the owner of this value; sometimes another, and always if this one is not ours. */
export function clientFor(
  { clientId }: { readonly clientId: string },
  world: World,
  dice: Dice,
): LiveClient | undefined {
  const own = world.clients.find(({ id }) => id === clientId)
  return own === undefined || dice.oneIn(8) ? dice.draw(world.clients) : own
}

/** Sometimes one or more of the resources. */
export function resources(world: World, dice: Dice): Pair[] {
  const known = [world.issuer, 'https://api.example/', 'https://jwt.example/v1']
  return dice.oneIn(6) ? dice.some(known).map((value): Pair => ['resource', value]) : []
}
