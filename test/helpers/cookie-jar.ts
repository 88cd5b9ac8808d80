/** Does with cookies what a browser does with the `Set-Cookie` of a response: stores or deletes them. */
export function keepCookies(jar: Map<string, string>, setCookie: readonly string[]): void {
  for (const cookie of setCookie) {
    const [, name = '', value = '', attributes = ''] = /^([^=]+)=([^;]*)(.*)$/.exec(cookie) ?? []
    // Only in the attributes: a random value can contain 1970.
    if (value === '' || /; *(?:max-age=0|expires=[^;]* 1970 )/i.test(attributes)) jar.delete(name)
    else jar.set(name, value)
  }
}
