import type { Seen, Sent } from './observation.ts'

/** Members whose values are credentials: a report shows the name of a variable in place of each. */
const secret =
  /^(password|client_secret|code|access_token|refresh_token|id_token|id_token_hint|client_assertion|assertion|subject_token|token|device_code|user_code|registration_access_token|request|request_uri|csrf|interaction)$/

const longestShown = 2000

/** A request as a curl line in which secrets are names of variables. */
export function curlOf({ method, url, headers, body, secretField }: Sent): string {
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    [value].flat().map((one) => `-H '${name}: ${quoted(redactedHeader(name, String(one)))}'`),
  )
  const isForm = String(headers['content-type'] ?? '').includes('form-urlencoded')
  const isSecret = (name: string) => name === secretField || secret.test(name)
  const fields = isForm
    ? [...new URLSearchParams(body)].map(([name, value]) => fieldOf(name, value, isSecret(name)))
    : []
  const text = body !== undefined && !isForm ? [`-d '${quoted(redactedJson(body))}'`] : []
  // curl posts where it has a body, and a form may have no fields.
  const hasBody = fields.length + text.length > 0
  const verb = method === (hasBody ? 'POST' : 'GET') ? [] : [`-X ${method}`]
  return ['curl', ...verb, `'${quoted(redactedUrl(url))}'`, ...lines, ...fields, ...text].join(' ')
}

function fieldOf(name: string, value: string, isSecret: boolean): string {
  return isSecret && value !== ''
    ? `-d "${name}=$${name.toUpperCase().replaceAll(/\W/g, '_')}"`
    : `--data-urlencode '${quoted(`${name}=${value}`)}'`
}

/** A response as text: its status, the headers that clauses are about, and the beginning of its body. */
export function responseText({ status, headers, body }: Pick<Seen, 'status' | 'headers' | 'body'>): string {
  const shown = [
    'content-type',
    'location',
    'cache-control',
    'www-authenticate',
    'dpop-nonce',
    'access-control-allow-origin',
    'retry-after',
    'allow',
  ]
  const lines = shown.flatMap((name) => {
    const value = headers[name]
    return value === undefined
      ? []
      : [`${name}: ${name === 'location' ? redactedUrl(String(value)) : String(value)}`]
  })
  const text = /html/.test(headers['content-type'] ?? '')
    ? `(a page of ${body.length} characters)`
    : redactedJson(body)
  return [`${status}`, ...lines, ...(text === '' ? [] : ['', text.slice(0, longestShown)])].join('\n')
}

function redactedHeader(name: string, value: string): string {
  if (/^authorization$/i.test(name)) return value.replace(/^(\S+)\s+.+$/, '$1 $CREDENTIALS')
  if (/^cookie$/i.test(name)) return value.replaceAll(/=([^;]+)/g, '=$COOKIE')
  return /^dpop$/i.test(name) ? '$PROOF' : value
}

function redactedUrl(url: string): string {
  return url.replaceAll(/([?&#])([^=&#]+)=([^&#]+)/g, (whole, sign: string, name: string) =>
    secret.test(name) ? `${sign}${name}=$${name.toUpperCase()}` : whole,
  )
}

function redactedJson(text: string): string {
  return text.replaceAll(/"(\w+)"(\s*:\s*)"((?:[^"\\]|\\.)+)"/g, (whole, name: string, colon: string) =>
    secret.test(name) ? `"${name}"${colon}"$${name.toUpperCase()}"` : whole,
  )
}

function quoted(text: string): string {
  return text.replaceAll("'", "'\\''")
}
