/** The results of a function for a list, without undefined ones. Nothing is allocated while there are none. */
export function mapDefined<T, R>(list: readonly T[], of: (one: T) => R | undefined): readonly R[] {
  let results: R[] | undefined
  for (const one of list) {
    const result = of(one)
    if (result === undefined) continue
    if (results === undefined) results = [result]
    else results.push(result)
  }
  return results ?? none
}

const none: readonly never[] = []
