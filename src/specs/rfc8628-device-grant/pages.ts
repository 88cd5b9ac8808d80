import type { FastifyReply, FastifyRequest } from 'fastify'
import { currentRequest } from '../../domain/current-grant.ts'
import { OAuthError } from '../../domain/errors.ts'
import { isBinding } from '../../domain/interaction.ts'
import { clientWords } from '../../domain/localized.ts'
import type { Scope, Seconds } from '../../domain/model.ts'
import { single } from '../../domain/parameters.ts'
import { hashSecret } from '../../domain/secret.ts'
import type { Text } from '../../domain/text.ts'
import type { Plugin } from '../../feature/deps.ts'
import { addressPrefix, userContext } from '../../http/address-prefix.ts'
import { parametersOf } from '../../http/parameters.ts'
import {
  type ConsentModel,
  consentEvent,
  consentModel,
  isApproved,
  readConsent,
  showDenial,
} from '../../pages/consent.ts'
import { ago, placeOf } from '../../pages/describe.ts'
import { acceptOwnForms, assertOwnForm, busyProblem, type FormModel } from '../../pages/forms.ts'
import { msg } from '../../pages/i18n/i18n.ts'
import { findSignedIn, servePage } from '../../pages/kit.ts'
import { whileSignedIn } from '../../users/sessions.ts'
import { throttled } from '../../users/throttling.ts'
import { deviceApproval, type UserVisit, type Visit } from './approve.ts'
import { formatUserCode, parseUserCode, wrongCodeBuckets } from './rules/codes.ts'
import {
  type DeviceAuthorization,
  decideDevice,
  deviceKind,
  isRefreshable,
  isWaiting,
  openDevice,
} from './rules/device.ts'

declare module '../../pages/pages.ts' {
  interface Pages {
    device: FormModel & {
      /** What was typed, or came with `verification_uri_complete`. */
      readonly userCode?: string
    }
    'device-confirm': ConsentModel & {
      readonly userCode: string
      readonly requestedAgoSeconds: Seconds
      /** "from the network 203.0.113.0/24"; absent if it is not known. */
      readonly requestedFrom?: Text
    }
    'device-done': { readonly clientName?: string; readonly accountUrl: string }
    'device-over': { readonly denied: boolean; readonly againUrl: string }
  }
}

/**
 * RFC 8628 §3.3: the pages on which a user types the code of a device, signs in, compares it, and decides. The link of
 * `verification_uri_complete` only fills in the code (RFC 8628 §3.3.1): nothing is looked up before the form is sent.
 */
export const devicePages: Plugin<'config' | 'store' | 'clock' | 'service' | 'declared'> = async (
  app,
  deps,
) => {
  const { config, service, store, clock } = deps
  const { prefix } = service
  const approveDevice = deviceApproval(app, deps)
  const modelOf = consentModel(app, deps)
  await acceptOwnForms(app, deps)
  const pageUrl = `${prefix}/device`
  const confirmPath = ({ userCode }: Pick<DeviceAuthorization, 'userCode'>) =>
    `/device/confirm?user_code=${formatUserCode(userCode)}`

  app.get('/device', { config: { limit: 'authorization' }, schema: { hide: true } }, (request, reply) => {
    const userCode = parseUserCode(single(parametersOf(request.query), 'user_code') ?? '')
    return showForm(request, reply, userCode === undefined ? {} : { userCode: formatUserCode(userCode) })
  })

  app.post('/device', { config: { limit: 'signIn' }, schema: { hide: true } }, async (request, reply) => {
    const sent = parametersOf(request.body)
    const secret = app.browser.ensureSecret(request, reply)
    assertOwnForm(sent, app.browser.csrfToken(secret, 'device'), pageUrl)
    const typed = (single(sent, 'user_code') ?? '').slice(0, 40)
    const userCode = parseUserCode(typed)
    const isLinked = single(sent, 'linked') !== undefined
    const problem = msg(isLinked ? 'device.about' : 'device.wrong')
    const wrong = { userCode: isLinked ? '' : typed, problem, status: 400 }
    if (userCode === undefined) return showForm(request, reply, wrong)
    try {
      const device = await openTyped(userCode, hashSecret(secret), addressPrefix(request.ip), isLinked)
      if (device === undefined) return showForm(request, reply, wrong)
      return reply.redirect(prefix + confirmPath(device), 303)
    } catch (error) {
      const problem = busyProblem(error, reply, 'device.throttled')
      return showForm(request, reply, { userCode: typed, problem, status: reply.statusCode })
    }
  })

  const showConfirm = async (visit: UserVisit) => {
    const { device, session, now, denial, reply } = visit
    if (denial !== undefined) return showDenial(visit, denial, formOf(visit))
    if (!app.shortcuts?.agrees) return show(visit)
    await whileSignedIn(store, session, now, () => approve(visit, device.request.scope))
    return reply.redirect(prefix + confirmPath(device), 303)
  }

  const confirm = async (visit: UserVisit) => {
    const { sent, device, now, session, denial, reply } = visit
    const url = prefix + confirmPath(device)
    assertOwnForm(sent, csrfOf(visit), url)
    if (isApproved(sent) && denial !== undefined) return reply.redirect(url, 303)
    const scope = readConsent(sent, visit.client, device.request, device.request.scope)
    if (scope === undefined) return reply.redirect(`${url}&changed=1`, 303)
    // The page finds out what has ended, and shows it.
    await whileSignedIn(store, session, now, () => (scope.length === 0 ? deny(visit) : approve(visit, scope)))
    return reply.redirect(url, 303)
  }

  const showForm = (
    request: FastifyRequest,
    reply: FastifyReply,
    { status = 200, ...shown }: { userCode?: string; problem?: Text; status?: number } | undefined = {},
  ): FastifyReply => {
    const secret = app.browser.ensureSecret(request, reply)
    const isLinked = status === 200 && shown.userCode !== undefined
    const hidden = { csrf: app.browser.csrfToken(secret, 'device'), ...(isLinked && { linked: '1' }) }
    return reply.page('device', { action: pageUrl, hidden, ...shown }, { status })
  }

  /** Opens the device with this code, counted and throttled; only what was wrong stays counted. */
  const openTyped = (userCode: string, browser: string, network: string, isLinked: boolean) => {
    const now = clock()
    const limits = config.signInThrottle
    const buckets = wrongCodeBuckets(browser, network, config.deviceGrant)
    return throttled(store, { buckets, limits, now }, () =>
      store.transact(deviceKind, userCode, (found) => openDevice(found, browser, now, isLinked)),
    )
  }

  /**
   * Loads a device for its decision. Otherwise responds, and returns undefined: with the form for the code if it was
   * not typed in this browser, with the end of a device that was decided or has expired, or with the sign-in.
   */
  const enter = async (reply: FastifyReply): Promise<UserVisit | undefined> => {
    const { request } = reply
    const sent = parametersOf(request.method === 'POST' ? request.body : request.query)
    const now = clock()
    const browserSecret = app.browser.secret(request)
    const userCode = parseUserCode(single(sent, 'user_code') ?? '')
    const device = userCode === undefined ? undefined : await store.find(deviceKind, userCode)
    const client = device && (await app.resolveClient(device.clientId))
    const isTyped = browserSecret !== undefined && device?.browsers.includes(hashSecret(browserSecret))
    if (device === undefined || client === undefined || browserSecret === undefined || !isTyped) {
      await reply.redirect(
        userCode === undefined ? pageUrl : `${pageUrl}?user_code=${formatUserCode(userCode)}`,
        303,
      )
      return undefined
    }
    const visit = { device, client, request, reply, browserSecret, sent, now }
    const current = currentRequest(device.request, client, service)
    if (!isWaiting(device, now) || client.lockedAt !== undefined || current instanceof OAuthError) {
      await showEnd(visit)
      return undefined
    }
    const isSwitching = request.method === 'GET' && single(sent, 'switch') !== undefined
    const signedIn = isSwitching ? undefined : await findSignedIn(app, deps, request, now)
    if (signedIn !== undefined) {
      const found = await app.seams.userChecks.collect(client, signedIn.session)
      const denial = isBinding(found) ? found : undefined
      if (denial?.remedy === undefined)
        return { ...visit, device: { ...device, request: current }, ...signedIn, denial }
    }
    const prompt = isSwitching ? ['select_account'] : []
    const policy = { clientId: client.id }
    await reply.startInteraction({ page: confirmPath(device), prompt, policy }, 'login')
    return undefined
  }

  const showEnd = ({ device, client, request, reply }: Visit): FastifyReply => {
    const { name } = clientWords(client, request.language)
    if (device.grantId === undefined)
      return reply.page('device-over', { denied: device.state === 'denied', againUrl: pageUrl })
    const accountUrl = `${prefix}/account/apps`
    return reply.page('device-done', { accountUrl, ...(name !== undefined && { clientName: name }) })
  }

  const show = async (visit: UserVisit): Promise<FastifyReply> => {
    const { device, client, request, reply, now } = visit
    const requestedFrom = placeOf(device.from, request, service)
    const outlives = isRefreshable(client)
    const asked = {
      scope: device.request.scope,
      resource: device.request.resource,
      outlives,
      isDevice: true,
    } as const
    return reply.page('device-confirm', {
      ...(await modelOf(visit, asked, formOf(visit))),
      userCode: formatUserCode(device.userCode),
      requestedAgoSeconds: ago(device.createdAt, now),
      ...(requestedFrom && { requestedFrom }),
    })
  }

  const formOf = (visit: UserVisit) => {
    const pageUrl = prefix + confirmPath(visit.device)
    const hidden = { user_code: formatUserCode(visit.device.userCode), csrf: csrfOf(visit) }
    return { action: `${prefix}/device/confirm`, hidden, pageUrl, switchUrl: `${pageUrl}&switch=1` }
  }

  const approve = ({ device, client, session, request, now }: UserVisit, scope: Scope) =>
    approveDevice({
      device,
      client,
      session,
      scope,
      context: userContext(request, now),
      basis: { sessionId: session.id },
    })

  const deny = async ({ device, client, user, request, denial, now }: UserVisit): Promise<void> => {
    const parties = { userId: user.id, clientId: client.id }
    const event = consentEvent(userContext(request, now), parties, [], denial)
    const ending = app.seams.requestEnds.collect(device.request) ?? []
    await store.transact(deviceKind, device.userCode, (found) =>
      decideDevice(found, { state: 'denied' }, now, event, ...ending),
    )
  }

  /** Bound to the session, too: a page shown to one user cannot be submitted as another. */
  const csrfOf = ({ browserSecret, device, session }: UserVisit) =>
    app.browser.csrfToken(browserSecret, 'device-confirm', device.deviceHash, session.id)

  servePage(app, '/device/confirm', {
    config: { limit: 'authorization' },
    repeats: ['scope'],
    enter,
    show: showConfirm,
    submit: confirm,
  })
}
