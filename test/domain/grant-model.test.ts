import t from 'tap'
import { verifyAccessToken, verifyRefreshToken } from '../../src/domain/access-token.ts'
import { type Issued, redeemCode } from '../../src/domain/authorization-code.ts'
import type { Decision } from '../../src/domain/decision.ts'
import { OAuthError } from '../../src/domain/errors.ts'
import type { GrantRules } from '../../src/domain/grant.ts'
import { openHandle, sealHandle, tokenIdOf } from '../../src/domain/handle.ts'
import type { Grant, GrantOfToken } from '../../src/domain/model.ts'
import { refresh, refreshHandle } from '../../src/domain/refresh-token.ts'
import { scopeAt } from '../../src/domain/resource.ts'
import { revokeToken } from '../../src/specs/rfc7009-revocation/rules.ts'
import { fc } from '../helpers/generated.ts'
import {
  approvedAt,
  codeVerifier,
  contentsOf,
  handleKey,
  handleKeys,
  lifetimes as long,
  otherClient,
  ownApi,
  policy,
  publicClient,
  redirectUri,
  resources,
  approved as sample,
} from '../helpers/samples.ts'

/*
 * A grant under every interleaving of its clients' requests. The model below is independent of grant.ts: it states the
 * rules of RFC 6749 §4.1.2, of RFC 9700 §4.14.2 and of FAPI 2.0 Security Profile §5.3.2.1 for a client that keeps its
 * refresh token, and the real grant has to agree. The rule of the client may change at any time.
 */

/** Short, so that a few steps reach every end. */
const lifetimes = { ...long, refreshTokenIdleSeconds: 120, refreshTokenAbsoluteSeconds: 200 }
const approved = { ...sample, absoluteExpiresAt: approvedAt + lifetimes.refreshTokenAbsoluteSeconds }

interface Token {
  readonly text: string
  readonly expiresAt: number
}

interface RefreshToken extends Token {
  /** Issued while the client kept its refresh token. */
  readonly isKept: boolean
}

/** What an observer can know. */
interface Model {
  now: number
  redemptions: number
  /** Refresh tokens in the order they were first issued; the last is the current one. */
  readonly refreshTokens: RefreshToken[]
  readonly accessTokens: (Token & { isRevoked: boolean })[]
  rotatedAt: number
  isRevoked: boolean
  /** The rule of the client: it keeps its refresh token, or each use rotates it. */
  keeps: boolean
}

/** The domain over one row, with the writes applied as a store does. */
class Real {
  row: Grant & GrantOfToken = approved
  readonly code = sealHandle(contentsOf(approved, 'code'), handleKey, approved.secret)
  highestSeq = 0
  keeps = false

  get rules(): GrantRules {
    return this.keeps ? { ...lifetimes, keepsRefreshToken: true } : lifetimes
  }

  /** The new row, or the error code. */
  #decide<T>(decision: () => Decision<T>): T | string {
    try {
      const made = decision()
      for (const write of made.writes) this.#apply(write)
      return 'rejection' in made ? made.rejection.code : made.result
    } catch (error) {
      if (error instanceof OAuthError) return error.code
      throw error
    }
  }

  #apply(write: Decision<unknown>['writes'][number]): void {
    const row = this.row
    if (write.op === 'redeemGrant' || write.op === 'rotateGrant') {
      const { op: _op, grantId: _id, at, ...ends } = write
      if (row.revokedAt !== undefined) throw new Error('a revoked grant was written to')
      if ((write.op === 'rotateGrant' ? write.fromSeq : 0) !== row.seq) throw new Error('from a stale row')
      const { refreshExpiresAt = row.refreshExpiresAt, expiresAt } = ends
      const moved = { seq: row.seq + 1, rotatedAt: at, expiresAt }
      this.row = { ...row, ...moved, ...(refreshExpiresAt !== undefined && { refreshExpiresAt }) }
    } else if (write.op === 'extendGrant') {
      const { refreshExpiresAt, expiresAt } = write
      if (row.revokedAt !== undefined) throw new Error('a revoked grant was written to')
      if (write.seq !== row.seq) throw new Error('from a stale row')
      this.row = { ...row, refreshExpiresAt, expiresAt }
    } else if (write.op === 'revokeGrant') this.row = { ...row, revokedAt: row.revokedAt ?? write.at }
    else if (write.op === 'revokeAccessToken') {
      this.row = { ...row, revokedTokens: [...row.revokedTokens, write.tokenId] }
    } else throw new Error(`a grant does not write ${write.op}`)
  }

  redeem(now: number, verifier: string, client = publicClient): Issued | string {
    const handle = openHandle(handleKeys, this.code, 'code')
    if (handle === undefined) return 'no handle'
    const redemption = { handle, client, redirectUri, codeVerifier: verifier, resource: [] }
    return this.#decide(() => redeemCode(this.row, redemption, policy, lifetimes, now))
  }

  refresh(token: string, now: number, scope: string | undefined, client = publicClient): Issued | string {
    const handle = openHandle(handleKeys, token, 'refresh')
    if (handle === undefined) return 'no handle'
    const request = { handle, client, scope, resource: [] }
    return this.#decide(() => refresh(this.row, request, policy, this.rules, now))
  }

  revoke(token: string, now: number, client = publicClient): string | undefined {
    const handle = openHandle(handleKeys, token, 'access', 'refresh')
    if (handle === undefined) return 'no handle'
    return this.#decide(() => revokeToken(handle, this.row, client, now)) as string | undefined
  }

  /** The tokens of a response, as the token endpoint seals them. */
  issue(
    { grant, terms: access }: Issued,
    now: number,
  ): { readonly refresh: RefreshToken; readonly access: Token } {
    const text = sealHandle(refreshHandle(grant, this.rules), handleKey, grant.secret)
    const whole = scopeAt(grant.scope, grant.resource, resources).length === access.scope.length
    const narrowing = whole ? {} : { narrowing: { scope: access.scope, resource: access.resource } }
    const expiresAt = now + access.seconds
    const token = { ...contentsOf(grant, 'access'), issuedAt: now, expiresAt, ...narrowing }
    return {
      refresh: { text, expiresAt: grant.refreshExpiresAt ?? 0, isKept: this.keeps },
      access: { text: sealHandle(token, handleKey, grant.secret), expiresAt },
    }
  }

  lives(text: string, now: number): boolean {
    const handle = openHandle(handleKeys, text, 'access', 'refresh')
    if (handle === undefined) return false
    return handle.kind === 'access'
      ? verifyAccessToken(handle, this.row, policy, now) !== undefined
      : verifyRefreshToken(handle, this.row, policy, now) !== undefined
  }
}

function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(message)
}

/** Asserts that exactly the tokens that are valid in the model are valid. */
function agree(model: Model, real: Real): void {
  assert(real.row.seq >= real.highestSeq, 'seq fell')
  real.highestSeq = real.row.seq
  assert(real.row.seq === model.refreshTokens.length, 'seq is not the number of refresh tokens')
  assert((real.row.revokedAt !== undefined) === model.isRevoked, 'only one of both is revoked')
  for (const [index, token] of model.refreshTokens.entries()) {
    const isCurrent = index === model.refreshTokens.length - 1
    const lives = isCurrent && !model.isRevoked && model.now < token.expiresAt
    assert(real.lives(token.text, model.now) === lives, `refresh token ${index} should live: ${lives}`)
  }
  for (const [index, token] of model.accessTokens.entries()) {
    const lives = !token.isRevoked && !model.isRevoked && model.now < token.expiresAt
    assert(real.lives(token.text, model.now) === lives, `access token ${index} should live: ${lives}`)
    assert(token.expiresAt <= real.row.expiresAt, 'the row ends before its token')
  }
}

function keep(model: Model, real: Real, issued: Issued, scope: string | undefined): RefreshToken {
  const tokens = real.issue(issued, model.now)
  const granted = scope === undefined ? [...approved.scope] : scope.split(' ')
  assert(
    issued.terms.scope.every((name) => granted.includes(name)),
    'the scope was widened',
  )
  assert(issued.grant.scope === approved.scope, 'the grant changed its scope')
  if (!model.accessTokens.some(({ text }) => text === tokens.access.text)) {
    model.accessTokens.push({ ...tokens.access, isRevoked: false })
  }
  return tokens.refresh
}

type Step = fc.Command<Model, Real>

function step(name: string, run: (model: Model, real: Real) => void): Step {
  return {
    check: () => true,
    run: (model, real) => {
      run(model, real)
      agree(model, real)
    },
    toString: () => name,
  }
}

const redeemIt = step('redeem', (model, real) => {
  const outcome = real.redeem(model.now, codeVerifier)
  const isFirst = model.redemptions === 0 && !model.isRevoked
  if (isFirst && model.now < approved.expiresAt) {
    assert(typeof outcome === 'object', `the first redemption is rejected: ${outcome}`)
    model.redemptions += 1
    model.rotatedAt = model.now
    model.refreshTokens.push(keep(model, real, outcome, undefined))
    return
  }
  assert(outcome === 'invalid_grant', 'a code is redeemed that must not be')
  // A replay, RFC 6749 §4.1.2; a code that merely expired revokes nothing.
  if (model.redemptions > 0) model.isRevoked = true
})

const redeemWrongly = (verifier: string, isStranger: boolean) =>
  step(isStranger ? 'redeem as a stranger' : 'redeem with a wrong verifier', (model, real) => {
    const outcome = real.redeem(model.now, verifier, isStranger ? otherClient : publicClient)
    assert(outcome === 'invalid_grant', 'a wrong redemption is accepted')
  })

/** @param age 0 is the current token, 1 the one before. */
const refreshIt = (age: number, scope: string | undefined) =>
  step(`refresh(-${age}, ${scope ?? 'all'})`, (model, real) => {
    const token = model.refreshTokens.at(-1 - age)
    const current = model.refreshTokens.at(-1)
    if (token === undefined || current === undefined) return
    const outcome = real.refresh(token.text, model.now, scope)
    if (scope === 'courses:read profile') {
      assert(outcome === 'invalid_scope', `a wider scope: ${outcome}`)
      return
    }
    const isOver = model.isRevoked || model.now >= current.expiresAt
    const isRetry = age === 1 && model.now < model.rotatedAt + lifetimes.refreshReuseSeconds
    if (isOver || (age > 0 && !isRetry)) {
      assert(outcome === 'invalid_grant', `a token ${age} back is accepted`)
      if (!isOver) model.isRevoked = true
      return
    }
    assert(typeof outcome === 'object', `a good refresh is rejected: ${outcome}`)
    const next = keep(model, real, outcome, scope)
    const isSameRule = current.isKept === model.keeps
    if (age === 1) {
      assert(next.text === current.text || !isSameRule, 'a retry got another successor')
      return
    }
    assert(next.expiresAt <= approved.absoluteExpiresAt, 'a refresh token outlives the absolute end')
    if (model.keeps) {
      assert(next.text === current.text || !isSameRule, 'a client that keeps its refresh token got another')
      assert(next.expiresAt >= current.expiresAt, 'a use shortened the refresh token')
      assert(real.lives(current.text, model.now), 'the refresh token does not work again')
      model.refreshTokens[model.refreshTokens.length - 1] = next
      return
    }
    model.rotatedAt = model.now
    model.refreshTokens.push(next)
  })

const refreshAsStranger = step('refresh as a stranger', (model, real) => {
  for (const { text } of model.refreshTokens) {
    assert(real.refresh(text, model.now, undefined, otherClient) === 'invalid_grant', 'a stranger refreshes')
  }
})

const revokeRefresh = (age: number) =>
  step(`revoke refresh(-${age})`, (model, real) => {
    const token = model.refreshTokens.at(-1 - age)
    if (token === undefined) return
    assert(real.revoke(token.text, model.now, otherClient) === 'invalid_grant', 'a stranger revokes')
    assert(real.revoke(token.text, model.now) === undefined, 'revoking fails')
    model.isRevoked = true
  })

const revokeAccess = (age: number) =>
  step(`revoke access(-${age})`, (model, real) => {
    const token = model.accessTokens.at(-1 - age)
    if (token === undefined) return
    assert(real.revoke(token.text, model.now) === undefined, 'revoking fails')
    token.isRevoked = true
    assert(tokenIdOf(token.text).length === 22, 'it has a name')
  })

const changeRule = step('change the rule', (model, real) => {
  model.keeps = !model.keeps
  real.keeps = model.keeps
})

const wait = (seconds: number) =>
  step(`wait ${seconds}`, (model) => {
    model.now += seconds
  })

const age = fc.constantFrom(0, 0, 1, 2, 5)
const scope = fc.constantFrom(undefined, undefined, 'courses:read', 'openid', 'courses:read profile')

t.test('a grant behaves as the RFCs require under every interleaving', async (t) => {
  const ends = fc.oneof(
    fc.constant(redeemIt),
    age.map((back) => refreshIt(back, undefined)),
    age.map(revokeRefresh),
  )
  const goesOn = fc.tuple(fc.constantFrom(0, 0, 1), scope).map(([back, names]) => refreshIt(back, names))
  const harmless = fc.oneof(
    fc.constantFrom(redeemWrongly('w'.repeat(43), false), redeemWrongly(codeVerifier, true)),
    fc.constantFrom(refreshAsStranger, changeRule),
    age.map(revokeAccess),
  )
  const waits = fc.constantFrom(1, 5, 9, 10, 40, 60, 95, 99, 100, 119, 120).map(wait)
  const steps = fc.commands(
    // What ends a grant is rare, or most runs would continue with a dead one.
    [ends, goesOn, goesOn, goesOn, goesOn, harmless, waits, waits, fc.constantFrom(1, 5, 9).map(wait)],
    { maxCommands: 25, size: 'max' },
  )
  let runs = 0
  let deepest = 0
  let kept = 0
  fc.assert(
    fc.property(steps, fc.boolean(), fc.boolean(), (commands, startsRedeemed, keeps) => {
      const setup = () => {
        const model: Model = {
          now: approvedAt,
          redemptions: 0,
          refreshTokens: [],
          accessTokens: [],
          rotatedAt: 0,
          isRevoked: false,
          keeps,
        }
        const real = new Real()
        real.keeps = keeps
        // Half of the runs begin where a grant spends most of its life.
        if (startsRedeemed) redeemIt.run(model, real)
        return { model, real }
      }
      const { model, real } = setup()
      fc.modelRun(() => ({ model, real }), commands)
      assert(model.redemptions <= 1, 'redeemed twice')
      runs += 1
      deepest = Math.max(deepest, model.refreshTokens.length)
      if (model.refreshTokens.length === 1 && model.accessTokens.length > 3) kept += 1
    }),
    { seed: 9700, numRuns: 1500 },
  )
  t.ok(runs >= 1500)
  t.ok(deepest >= 4, `rotations were reached: ${deepest}`)
  t.ok(kept >= 20, `refresh tokens were used several times: ${kept}`)
  t.equal(ownApi.accessTokenSeconds, 100, 'the model counts on it')
})
