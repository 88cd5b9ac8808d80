import { createHmac, createSecretKey, randomBytes } from 'node:crypto'

/** With this key a fingerprint identifies a secret within this process, and does not help to guess a weak one. */
const fingerprintKey = createSecretKey(randomBytes(32))

/** Makes six characters that distinguish a secret from others. */
export function fingerprint(secret: string): string {
  return createHmac('sha256', fingerprintKey).update(secret).digest('hex').slice(0, 6)
}

/** A code or token of this server, or a compact JWS. */
const ownSecret = /\b(ly[a-z]+_[a-z]+)_[\w-]+(?:\.[\w-]+)*|\beyJ[\w-]+\.[\w-]+\.[\w-]*/g

/** Names of parameters and members whose values are secrets. */
const secretName =
  /(?:^|_|-)(?:code|password|secret|verifier|assertion|csrf|otp|totp|token|credential|pin)$|^id_token_hint$|^(?:new|current|repeat)_?password/i

/** Makes the mark that replaces a secret: `(code~3f9a1c)`. It is safe in a URL, a header and JSON. */
export function mark(kind: string, secret: string): string {
  return `(${kind.replaceAll('_', '-')}~${fingerprint(secret)})`
}

/** Marks every code and token of this server in a text. */
export function redactText(text: string): string {
  return text.replaceAll(ownSecret, (secret, prefix?: string) =>
    mark(prefix === undefined ? 'jwt' : (prefix.split('_')[1] ?? prefix), secret),
  )
}

/** Marks the value of a parameter or member if its name says that it is a secret. */
export function redactValue(name: string, value: string): string {
  if (!secretName.test(name) || value === '') return redactText(value)
  const marked = redactText(value)
  // The prefix of a token is more precise than the name of its parameter.
  return /^\([a-z]+~[0-9a-f]{6}\)$/.test(marked) && !marked.startsWith('(jwt~') ? marked : mark(name, value)
}

/** Marks the secrets in a query or form body; the rest is unchanged. */
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

/** Marks the secrets in a URL or a path; its query and fragment are read as forms. */
export function redactUrl(url: string): string {
  const [, path = '', query, fragment] = /^([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/s.exec(url) ?? []
  const tail = [query !== undefined && `?${redactForm(query)}`, fragment && `#${redactForm(fragment)}`]
  return redactText(path) + tail.filter(Boolean).join('')
}

/** Marks the secrets in a JSON value by the names of their members. */
export function redactJson(value: unknown, name = ''): unknown {
  if (typeof value === 'string') return redactValue(name, value)
  if (Array.isArray(value)) return value.map((each) => redactJson(each, name))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([member, each]) => [member, redactJson(each, member)]))
}

/** Marks the secrets in the value of a header. */
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
