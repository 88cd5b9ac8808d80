/** The shapes of the seams in seams.ts. What plugins add is compiled into one function before the start. */

/** A function that a plugin adds. It takes at most three arguments, so that a call makes no list of them. */
// biome-ignore lint/suspicious/noExplicitAny: the parameters of an added function are its seam's.
type Added = (a?: any, b?: any, c?: any) => unknown

/** What an added function contributes; undefined: nothing. */
type Contributed<F extends Added> = Exclude<Awaited<ReturnType<F>>, undefined>

/** The result of a call: a promise only if a contribution can be one. */
type Collected<F extends Added, J> =
  | J
  | undefined
  | (Extract<ReturnType<F>, PromiseLike<unknown>> extends never ? never : Promise<J | undefined>)

/** Accepts what is added until the start. */
function gate(what: string) {
  let isClosed = false
  return {
    /** @throws {Error} after the start: from then on requests would be treated differently. */
    assertOpen: () => {
      if (isClosed) throw new Error(`the ${what} is added after the start`)
    },
    close: () => {
      isClosed = true
    },
  }
}

/**
 * Functions that are called one after the other.
 * @param compile Makes one function of all of them. A seam to which nothing is added has one that does nothing.
 */
function functions<F extends Added>(what: string, compile: (added: readonly F[]) => Added) {
  const { assertOpen, close } = gate(what)
  const added: F[] = []
  let run: Added = () => undefined
  const add = (one: F): void => {
    assertOpen()
    added.push(one)
    run = compile(added)
  }
  const call: Added = (a, b, c) => run(a, b, c)
  return { add, close, call }
}

/** Values by the names that features declare: each is added once, and none is missing at the start. */
export function named<T>(what: string, declared: object) {
  const { assertOpen, close } = gate(what)
  const added = new Map<string, T>()
  return {
    added: added as ReadonlyMap<string, T>,
    /** @throws {Error} for a name that no feature declares, or that was added before. */
    add(name: string, contribution: T): void {
      assertOpen()
      if (!Object.hasOwn(declared, name)) throw new Error(`no feature declares the ${what} ${name}`)
      if (added.has(name)) throw new Error(`the ${what} ${name} is added twice`)
      added.set(name, contribution)
    },
    /** @throws {Error} for a name that was declared and not added. */
    close(): void {
      const missing = Object.keys(declared).find((name) => !added.has(name))
      if (missing !== undefined) throw new Error(`the ${what} ${missing} is declared, but no plugin adds it`)
      close()
    },
  }
}

/** Members of a document or a response; lists of the same name are joined. */
export function members<T = unknown>(what: string) {
  const { assertOpen, close } = gate(what)
  let all: Readonly<Record<string, T>> = {}
  return {
    close,
    /** Returns the members so far. */
    all: () => all,
    add(more: Readonly<Record<string, T>>): void {
      assertOpen()
      const joined = Object.entries(more).map(([name, value]) => {
        const known = all[name]
        const isList = Array.isArray(known) && Array.isArray(value)
        return [name, isList ? [...new Set([...known, ...value])] : value]
      })
      all = { ...all, ...Object.fromEntries(joined) }
    },
  }
}

/**
 * Contributions: each function returns its own; undefined, at once, if it has none. Without any, no object and no
 * promise is made.
 * @param join Makes one value of the contributions, in the order in which their functions were added.
 */
export function contribution<F extends Added, J>(
  what: string,
  join: (contributed: readonly Contributed<F>[]) => J,
) {
  const joinAll = (all: readonly unknown[]) => {
    const contributed = all.filter((one): one is Contributed<F> => one !== undefined)
    return contributed.length === 0 ? undefined : join(contributed)
  }
  const { add, close, call } = functions<F>(what, (added) => (a, b, c) => {
    let all: unknown[] | undefined
    let waits = false
    for (const contribute of added) {
      const contribution = contribute(a, b, c)
      if (contribution === undefined) continue
      all ??= []
      all.push(contribution)
      waits ||= contribution instanceof Promise
    }
    if (all === undefined) return undefined
    return waits ? Promise.all(all).then(joinAll) : joinAll(all)
  })
  // `as`: the arguments and the results are those of the added functions.
  return { add, close, collect: call as (...given: Parameters<F>) => Collected<F, J> }
}

/** Contributions by the names that features declare, as with `named`. */
export function declaredContribution<F extends Added, J>(
  what: string,
  declared: object,
  join: (contributed: readonly Contributed<F>[]) => J,
) {
  const names = named<F>(what, declared)
  const { add, collect } = contribution(what, join)
  return {
    collect,
    close: names.close,
    add(name: string, contribute: F): void {
      names.add(name, contribute)
      add(contribute)
    },
  }
}

/** Conditions: each function throws, at once, if what it checks does not hold. */
export function condition<F extends Added>(what: string) {
  const { add, close, call } = functions<F>(what, (added) => (a, b, c) => {
    // The compiler accepts an asynchronous one, but its error would come too late to reject anything.
    for (const assert of added)
      if (assert(a, b, c) !== undefined) throw new Error(`the ${what} returns a value`)
  })
  // `as`: the arguments are those of the added functions.
  return { add, close, assert: call as (...given: Parameters<F>) => void }
}

/** A choice: the first function that does not return undefined decides. */
export function choice<F extends Added>(what: string) {
  const { add, close, call } = functions<F>(what, (added) => (a, b, c) => {
    for (const choose of added) {
      const chosen = choose(a, b, c)
      if (chosen !== undefined) return chosen
    }
    return undefined
  })
  // `as`: the arguments and the results are those of the added functions.
  return { add, close, choose: call as (...given: Parameters<F>) => ReturnType<F> | undefined }
}

/** Transformations: each function changes what the one before it returned. */
export function transformation<T extends object>(what: string) {
  const { add, close, call } = functions<(value: T) => T>(
    what,
    (added) => (value) => added.reduce((changed, transform) => transform(changed), value),
  )
  // `as`: the added functions return nothing else.
  return { add, close, apply: (value: T) => (call(value) ?? value) as T }
}

/** Joins members: of two of the same name the later one wins. */
export function merged<T extends object>(all: readonly T[]): T {
  const [only] = all
  return all.length === 1 && only !== undefined ? only : Object.assign({}, ...all)
}
