/**
 * What a browser is called in a list of sign-ins, `Firefox, Linux`; undefined when it does not say. For showing only:
 * anybody can send any `User-Agent`, RFC 9110 §10.1.5.
 */
export async function browserName(userAgent: string | undefined): Promise<string | undefined> {
  if (userAgent === undefined || userAgent.length > longest) return undefined
  const { default: Bowser } = await import('bowser')
  const { browser, os } = Bowser.parse(userAgent)
  const names = [browser.name, os.name].filter((name) => name !== undefined && name !== '')
  return names.length === 0 ? undefined : names.join(', ')
}

/** No browser's is longer; the parser need not see more. */
const longest = 512
