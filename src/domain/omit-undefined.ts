/** The members that are not undefined: optional members of records are absent, never undefined. */
export function omitUndefined<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const defined: Record<string, unknown> = {}
  for (const name of Object.keys(members) as (keyof T & string)[]) {
    const value = members[name]
    if (value !== undefined) defined[name] = value
  }
  return defined as { [K in keyof T]?: Exclude<T[K], undefined> } // the names of T, and no other
}
