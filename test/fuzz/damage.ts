import type { Dice } from './dice.ts'
import { contentTypes, foreignBytes, members, names, oddHeaders } from './odds.ts'
import { basic, type Draft, type Pair, type Sent } from './request.ts'
import { liveValue, nasty, nearly, redirects } from './values.ts'
import type { World } from './world.ts'

/** Four in ten requests stay unchanged, so that there is something to damage; the rest are damaged once or twice. */
export function damageDraft(draft: Draft, world: World, dice: Dice): Draft {
  let damaged = draft
  for (let left = dice.pick([0, 0, 1, 1, 2]); left > 0; left -= 1) damaged = damageOnce(damaged, world, dice)
  return damaged
}

function damageOnce(draft: Draft, world: World, dice: Dice): Draft {
  const { form, json, query } = draft
  const where = dice.weighted({ parameters: 12, headers: 4, method: 1, path: 1, place: 1, browser: 1 })
  switch (where) {
    case 'parameters':
      if (json !== undefined) return { ...draft, json: damageJson(json, world, dice) }
      if (form !== undefined && !dice.oneIn(8)) return { ...draft, form: damagePairs(form, world, dice) }
      return { ...draft, query: damagePairs(query, world, dice) }
    case 'headers':
      return { ...draft, headers: damageHeaders(draft.headers, world, dice) }
    case 'method':
      return {
        ...draft,
        method: dice.pick(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE']),
      }
    case 'path':
      return { ...draft, path: damagePath(draft.path, dice) }
    case 'place':
      return { ...draft, query: form ?? query, form: query, json: undefined }
    case 'browser':
      return {
        ...draft,
        ...(world.browsers.length > 0 && { browser: dice.draw(world.browsers) ?? { cookies: new Map() } }),
      }
  }
}

function damagePairs(pairs: readonly Pair[], world: World, dice: Dice): Pair[] {
  const at = dice.below(pairs.length)
  const [name, value] = pairs[at] ?? [dice.pick(names), '']
  const put = (...instead: Pair[]) => [...pairs.slice(0, at), ...instead, ...pairs.slice(at + 1)]
  const other = () => anyValue(name, world, dice)
  switch (dice.below(12)) {
    case 0:
      return put()
    case 1:
      return put([name, value], [name, value])
    case 2:
      return put([name, value], [name, other()])
    case 3:
      return put([name, ''])
    case 4:
    case 5:
    case 6:
      return put([name, other()])
    case 7:
    case 8:
      return put([name, nearly(value, dice)])
    case 9:
      return [...pairs, [dice.pick(names), other()]]
    case 10:
      return put([nearly(name, dice), value])
    default:
      return dice.oneIn(10)
        ? [...pairs, ...Array.from({ length: 101 }, (_, index): Pair => [`p${index}`, '1'])]
        : [...pairs, ...twice([dice.pick(nasty), dice.pick(nasty)], dice)]
  }
}

function twice(pair: Pair, dice: Dice): Pair[] {
  return dice.oneIn(2) ? [pair, pair] : [pair]
}

function anyValue(name: string, world: World, dice: Dice): string {
  if (name.includes('redirect_uri') && !dice.oneIn(3)) return dice.pick(redirects)
  return dice.oneIn(2) ? liveValue(world, dice) : dice.pick(nasty)
}

function damageJson(json: unknown, world: World, dice: Dice): unknown {
  if (typeof json !== 'object' || json === null || dice.oneIn(20)) return anyJson(world, dice, 3)
  const known = Object.entries(json)
  const name = dice.oneIn(2) ? dice.draw(known)?.[0] : dice.pick(members)
  const value = name?.endsWith('redirect_uris')
    ? dice.oneIn(2)
      ? [dice.pick(redirects), ...dice.some(redirects)]
      : Array.from({ length: dice.below(60) }, (_, index) => `http://127.0.0.1/${index}`)
    : anyJson(world, dice, 3)
  // Object.fromEntries makes an own member of `__proto__` too, which an object literal would not.
  return Object.fromEntries([...known.filter(([each]) => each !== name), [name ?? dice.pick(nasty), value]])
}

function anyJson(world: World, dice: Dice, depth: number): unknown {
  switch (dice.below(depth > 0 ? 9 : 6)) {
    case 0:
      return null
    case 1:
      return dice.oneIn(2)
    case 2:
      return dice.pick([0, -1, 1e300, 0.5, 2 ** 53])
    case 3:
      return liveValue(world, dice)
    case 4:
    case 5:
      return dice.pick(nasty)
    case 6:
      return Array.from({ length: dice.below(4) }, () => anyJson(world, dice, depth - 1))
    case 7:
      return Array.from({ length: dice.below(30) }).reduce((inner) => [inner], 1)
    default:
      return Object.fromEntries(
        Array.from({ length: dice.below(4) }, () => [dice.pick(nasty), anyJson(world, dice, depth - 1)]),
      )
  }
}

function damageHeaders(headers: readonly Pair[], world: World, dice: Dice): Pair[] {
  const without = (name: string) => headers.filter(([each]) => each.toLowerCase() !== name.toLowerCase())
  if (dice.oneIn(2)) {
    const client = dice.draw(world.clients)
    const authorization = dice.pick<Pair | undefined>([
      undefined,
      ['Authorization', `Bearer ${liveValue(world, dice)}`],
      ['Authorization', `bearer  ${liveValue(world, dice)} `],
      ['Authorization', `DPoP ${liveValue(world, dice)}`],
      ['Authorization', 'Bearer'],
      ['Authorization', `Bearer ${'a'.repeat(9000)}`],
      ['Authorization', 'Bearer \u00e9\u00ff'],
      basic(client?.id ?? '', client?.secret ?? ''),
      basic(client?.id ?? '', dice.pick(nasty)),
      basic(liveValue(world, dice), liveValue(world, dice)),
      ['Authorization', 'Basic ===='],
      ['Authorization', `Basic ${Buffer.from('%zz:%00').toString('base64')}`],
      ['Authorization', `Digest username="${client?.id}"`],
    ])
    return authorization === undefined
      ? without('authorization')
      : [...without('authorization'), authorization]
  }
  return [...headers, dice.pick(oddHeaders)]
}

function damagePath(path: string, dice: Dice): string {
  const at = 1 + dice.below(path.length)
  return dice.pick([
    `${path}/`,
    `${path}//`,
    `/${path}`,
    `${path}/x`,
    `${path};a=b`,
    `${path}/..`,
    `${path}/../token`,
    `${path}%00`,
    `${path}%2f`,
    `${path}%ff`,
    `${path}.json`,
    path.toUpperCase(),
    `${path.slice(0, at)}%${path.charCodeAt(at - 1).toString(16)}${path.slice(at)}`,
    `${path.slice(0, at)}%${path.slice(at)}`,
    `${path}/${'a'.repeat(300)}`,
    `http://evil.example${path}`,
    `${path}?${'a&'.repeat(150)}`,
  ])
}

/** One in twelve is also damaged as text: what no form or JSON library would send. */
export function damageSent(sent: Sent, dice: Dice): Sent {
  if (!dice.oneIn(12)) return sent
  const { body } = sent
  const at = dice.below(body.length + 1)
  const withType = (type: string) => ({
    ...sent,
    headers: [...sent.headers.filter(([name]) => name !== 'Content-Type'), ['Content-Type', type] as const],
  })
  switch (dice.below(10)) {
    case 0:
      return { ...sent, body: body.subarray(0, at) }
    case 1:
      return {
        ...sent,
        body: Buffer.concat([body.subarray(0, at), dice.pick(foreignBytes), body.subarray(at)]),
      }
    case 2:
      return { ...sent, body: Buffer.concat([body, body]) }
    case 3:
      return { ...sent, body: Buffer.concat([body, Buffer.alloc(dice.pick([17_000, 70_000]), 0x61)]) }
    case 4:
      return withType(dice.pick(contentTypes))
    case 5:
      return { ...sent, headers: sent.headers.filter(([name]) => name !== 'Content-Type') }
    case 6:
      return { ...sent, headers: [...sent.headers, dice.draw(sent.headers) ?? ['X', 'x']] }
    case 7:
      return { ...sent, body: Buffer.from(`${'['.repeat(5000)}`) }
    case 8:
      return chunked(sent, dice)
    default:
      return {
        ...sent,
        target: `${sent.target}${sent.target.includes('?') ? '&' : '?'}x=%${dice.pick(['', 'z', 'ff', '00', 'c0%af'])}`,
      }
  }
}

function chunked(sent: Sent, dice: Dice): Sent {
  const at = dice.below(sent.body.length + 1)
  const parts = [sent.body.subarray(0, at), sent.body.subarray(at)].filter(({ length }) => length > 0)
  const chunks = parts.flatMap((part) => [
    Buffer.from(`${part.length.toString(16)}\r\n`),
    part,
    Buffer.from('\r\n'),
  ])
  return {
    ...sent,
    headers: [...sent.headers, ['Transfer-Encoding', 'chunked']],
    body: Buffer.concat([...chunks, Buffer.from('0\r\n\r\n')]),
  }
}
