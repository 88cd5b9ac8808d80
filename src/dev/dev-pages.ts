import { Eta } from 'eta'
import type { FastifyReply } from 'fastify'
import fp from 'fastify-plugin'
import type { Seconds } from '../domain/model.ts'
import { escapeForPage } from '../pages/i18n/html.ts'
import { readAsset, readTextAsset } from '../system/assets.ts'
import { isoInstant } from '../system/system.ts'
import { requestText, responseText } from './flows/message.ts'

declare module 'fastify' {
  interface FastifyReply {
    /** Sends a page of the development server. It cannot be framed, and other servers do not see its address. */
    devPage(name: (typeof pageNames)[number], model: object): FastifyReply
  }
}

const partials = ['layout', 'exchange', 'judgement', 'tokens', 'happened'] as const
const pageNames = ['start', 'flows', 'flow', 'list', 'try', 'try-run', 'docs', 'docs-redirect'] as const
const assets = [
  ['dev.css', 'text/css; charset=utf-8'],
  ['dev.js', 'text/javascript; charset=utf-8'],
] as const

const pageHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'x-frame-options': 'DENY',
  // Not `no-referrer`: with it browsers send no Origin with a form, and only-local.ts needs it.
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; '),
} as const

/**
 * Decorates `reply.devPage` and serves the stylesheet and the script of these pages. @param prefix The path of the
 * issuer.
 */
export const devPages = fp<{ readonly prefix: string }>(
  async (app, { prefix }) => {
    let templates: Eta | undefined
    for (const [name, type] of assets) {
      const body = readAsset(`views/dev/${name}`)
      app.get(`${prefix}/_dev/assets/${name}`, { schema: { hide: true } }, async (_request, reply) =>
        reply.type(type).header('cache-control', 'no-cache').send(body),
      )
    }
    app.decorateReply('devPage', function (this: FastifyReply, name, model) {
      templates ??= loadTemplates()
      const html = templates.render(`@${name}.eta`, {
        page: model,
        prefix,
        tools: { instant, inWords, marked, withDates, requestText, answerText: responseText },
      })
      return this.headers(pageHeaders).send(html)
    })
  },
  { name: 'dev-pages' },
)

/** Called for the first page, because most servers in tests show none. */
function loadTemplates(): Eta {
  const eta = new Eta({ autoEscape: true })
  for (const name of [...partials, ...pageNames])
    eta.loadTemplate(`@${name}.eta`, readTextAsset(`views/dev/${name}.eta`))
  return eta
}

/** Like `marked`, with seconds since the epoch shown as dates. */
function withDates(text: string): string {
  return marked(text).replaceAll(/\b[123]\d{9}\b/g, (at) => `${instant(Number(at))} UTC`)
}

/** `2027-01-01 12:00:05`, UTC. */
function instant(at: Seconds): string {
  return isoInstant(at).replace('T', ' ').replace('Z', '')
}

/** Days, hours, minutes and seconds that are not zero: `31 d`, `1 h 30 min`. */
function inWords(seconds: Seconds): string {
  const units = [
    ['d', 86_400, Number.POSITIVE_INFINITY],
    ['h', 3600, 24],
    ['min', 60, 60],
    ['s', 1, 60],
  ] as const
  const parts = units.map(([unit, size, most]) => [Math.floor(seconds / size) % most, unit] as const)
  return parts.flatMap(([count, unit]) => (count > 0 ? `${count} ${unit}` : [])).join(' ')
}

/** Escapes `text` and highlights the marks of secrets in it. Templates must not escape the result again. */
function marked(text: string): string {
  return escapeForPage(text).replaceAll(
    /\(([a-z-]+)~([0-9a-f]{6})\)/g,
    '<span class="secret">$1 <b>$2</b></span>',
  )
}
