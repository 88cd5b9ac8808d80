import { createHmac, randomBytes } from 'node:crypto'

/** A fingerprint identifies the same secret within this process, and does not help to guess a weak one. */
const fingerprintKey = randomBytes(32)

/** Six characters that tell a secret from another one. */
export function fingerprint(secret: string): string {
  return createHmac('sha256', fingerprintKey).update(secret).digest('hex').slice(0, 6)
}

/** A secret of ours, whatever its kind, or a compact JWS. */
const ownSecret = /\b(ly[a-z]+_[a-z]+)_[\w-]+(?:\.[\w-]+)*|\beyJ[\w-]+\.[\w-]+\.[\w-]*/g

/** Parameters and members that are secrets whatever they hold. */
const secretName =
  /(?:^|_|-)(?:code|password|secret|verifier|assertion|csrf|otp|totp|token|credential|pin)$|^id_token_hint$|^(?:new|current|repeat)_?password/i

/** What stands in a secret's place: `(code~3f9a1c)`. Safe in a URL, a header and JSON. */
export function mark(kind: string, secret: string): string {
  return `(${kind.replaceAll('_', '-')}~${fingerprint(secret)})`
}

/** The same text with every secret of ours in it marked. */
export function redactText(text: string): string {
  return text.replaceAll(ownSecret, (secret, prefix?: string) =>
    mark(prefix === undefined ? 'jwt' : (prefix.split('_')[1] ?? prefix), secret),
  )
}

/** The value of a parameter or member of this name, marked when it is a secret. */
export function redactValue(name: string, value: string): string {
  if (!secretName.test(name) || value === '') return redactText(value)
  const marked = redactText(value)
  // A token of ours says better what it is than the name of the parameter it came in.
  return /^\([a-z]+~[0-9a-f]{6}\)$/.test(marked) && !marked.startsWith('(jwt~') ? marked : mark(name, value)
}

/** A query or form body with its secrets marked, the rest as it was sent. */
export function redactForm(text: string): string {
  return text
    .split('&')
    .map((pair) => {
      const [name = '', ...rest] = pair.split('=')
      if (rest.length === 0) return redactText(pair)
      const [plain, value] = [decoded(name), rest.join('=')]
      const redacted = redactValue(plain, decoded(value))
      return redacted === decoded(value) ? pair : `${name}=${redacted}`
    })
    .join('&')
}

/** A URL or a path: its query and its fragment are read as forms. */
export function redactUrl(url: string): string {
  const [, path = '', query, fragment] = /^([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/s.exec(url) ?? []
  const tail = [query !== undefined && `?${redactForm(query)}`, fragment && `#${redactForm(fragment)}`]
  return redactText(path) + tail.filter(Boolean).join('')
}

/** The same JSON value with its secrets marked, by the names of their members. */
export function redactJson(value: unknown, name = ''): unknown {
  if (typeof value === 'string') return redactValue(name, value)
  if (Array.isArray(value)) return value.map((each) => redactJson(each, name))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([member, each]) => [member, redactJson(each, member)]))
}

/** A header's value: credentials are marked, cookies each by its name. */
export function redactHeader(name: string, value: string): string {
  switch (name.toLowerCase()) {
    case 'authorization':
    case 'proxy-authorization':
      return redactCredentials(value)
    case 'cookie':
      return value
        .split(/; ?/)
        .map((pair) => pair.replace(/=(.*)$/s, (_all, secret: string) => `=${mark('cookie', secret)}`))
        .join('; ')
    case 'set-cookie':
      return value.replace(/=([^;]*)/, (_all, secret: string) =>
        secret === '' ? '=' : `=${mark('cookie', secret)}`,
      )
    case 'location':
    case 'referer':
      return redactUrl(value)
    default:
      return redactText(value)
  }
}

function redactCredentials(value: string): string {
  const [scheme = '', ...rest] = value.split(' ')
  const credentials = rest.join(' ').trim()
  if (credentials === '') return /^(?:bearer|basic)$/i.test(scheme) ? scheme : mark('credentials', scheme)
  if (!/^basic$/i.test(scheme)) {
    const marked = redactText(credentials)
    return `${scheme} ${marked === credentials ? mark('credentials', credentials) : marked}`
  }
  const [clientId = '', ...secret] = Buffer.from(credentials, 'base64').toString().split(':')
  if (secret.length === 0) return `${scheme} ${mark('credentials', credentials)}`
  return `${scheme} ${redactText(clientId)}:${mark('client-secret', decoded(secret.join(':')))}`
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return text
  }
}
