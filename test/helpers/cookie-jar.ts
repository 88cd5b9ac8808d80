/** Does with cookies what a browser does with the `Set-Cookie` of a response: keeps them, or forgets them. */
export function keepCookies(jar: Map<string, string>, setCookie: readonly string[]): void {
  for (const cookie of setCookie) {
    const [, name = '', value = '', attributes = ''] = /^([^=]+)=([^;]*)(.*)$/.exec(cookie) ?? []
    // Of the attributes alone: a random value has 1970 in it now and then.
    if (value === '' || /; *(?:max-age=0|expires=[^;]* 1970 )/i.test(attributes)) jar.delete(name)
    else jar.set(name, value)
  }
}
