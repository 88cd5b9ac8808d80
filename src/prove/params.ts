import { type Ended, redirectOf } from './browser.ts'
import { membersOf } from './server.ts'

/** Parameters of a request: undefined is left out, a list is repeated. */
export type Params = Readonly<Record<string, string | readonly string[] | undefined>>

export const formHeaders = { 'content-type': 'application/x-www-form-urlencoded' }

/** Takes PKCE out of a request. */
export const noChallenge: Params = { code_challenge: undefined, code_challenge_method: undefined }

export function encode(params: Params): string {
  const encoded = new URLSearchParams()
  for (const [name, value] of Object.entries(params))
    for (const one of value === undefined ? [] : [value].flat()) encoded.append(name, one)
  return encoded.toString()
}

export function first(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : value?.[0]
}

/** How a request ended, in words. */
export function endingOf(ended: Ended): string {
  if (ended.kind === 'callback') {
    const error = ended.params.get('error')
    return error === null ? 'a redirect to the client without an error' : `a redirect with the error ${error}`
  }
  const { seen } = ended
  const error = membersOf(seen)?.['error']
  const location = redirectOf(seen)
  if (location !== undefined) return `a redirect to ${location}`
  return `status ${seen.status}${typeof error === 'string' ? `, ${error}` : ', a page'}`
}
