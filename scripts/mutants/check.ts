import { existsSync, globSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { basename, dirname, extname, join } from 'node:path'
import ts from 'typescript'
import type { Fault } from '../../test/mutants/fault.ts'
import { placesOf, type Range, tokensOf } from './tokens.ts'

/** The test files that have to notice a fault, the likeliest first. */
export type TestFinder = (fault: Fault) => readonly string[]

/** Finds the files whose tests carry the id of a fault's rule, so that tests may move; black-box ones come first. */
export function testFinder(root: string): TestFinder {
  const isProtocol = (file: string) => file.startsWith('test/conformance/')
  const tests = globSync('test/**/*.test.ts', { cwd: root })
    .sort()
    .sort((one, other) => Number(isProtocol(other)) - Number(isProtocol(one)))
    .map((file) => ({ file, text: readFileSync(join(root, file), 'utf8') }))
  return (fault) => {
    if ('tests' in fault) return fault.tests
    return tests.filter(({ text }) => text.includes(`[${fault.rule}]`)).map(({ file }) => file)
  }
}

interface Place {
  readonly file: string
  readonly range: Range
}

/** A file of the source with a fault in it. */
export interface FaultyFile {
  /** Its path below the root: another one than the fault's when the code has moved. */
  readonly file: string
  readonly text: string
}

/** Puts faults into the source below a root, which must not change in between. */
export type Breaker = (fault: Fault) => FaultyFile

/**
 * Finds the place of a fault by the tokens of its `find`, in any layout: in the file it names, or else in the only place
 * of all of src. The breaker throws one line that says why a fault cannot be tried.
 */
export function createBreaker(root: string): Breaker {
  const read = cached((file: string) => {
    const path = join(root, file)
    return existsSync(path) ? readFileSync(path, 'utf8') : ''
  })
  const tokens = cached((file: string) => (file.endsWith('.ts') ? tokensOf(read(file)) : undefined))
  const names = cached((file: string) => new Set(identifiersOf(read(file))))
  const sources = cached((extension: string) =>
    globSync([`src/**/*${extension}`, `views/**/*${extension}`], { cwd: root }).sort(),
  )

  const placesIn = (file: string, find: string): readonly Range[] => {
    const exact = exactPlaces(read(file), find)
    if (exact.length === 1) return exact
    const [part, whole] = [partOf(find), tokens(file)]
    return part === undefined || whole === undefined ? exact : placesOf(part, whole)
  }

  const find = ({ file, find }: Fault): readonly Place[] => {
    const found = (name: string) => placesIn(name, find).map((range) => ({ file: name, range }))
    const hinted = found(file)
    if (hinted.length > 0) return hinted
    const anywhere = sources(extname(file)).flatMap(found)
    // A file that moved keeps its name, and a part of one often stays in the folder.
    const alike = [basename, dirname].map((of) => anywhere.filter((place) => of(place.file) === of(file)))
    return alike.find((places) => places.length === 1) ?? anywhere
  }

  return (fault) => {
    const places = find(fault)
    const [place] = places
    const sought = JSON.stringify(fault.find)
    if (place === undefined)
      throw new Error(`stale: neither ${fault.file} nor another file contains ${sought}`)
    const { file, range } = place
    if (places.length > 1) {
      const files = [...new Set(places.map((one) => one.file))].join(', ')
      throw new Error(`ambiguous: ${sought} is ${places.length} times in ${files}`)
    }
    const sound = read(file)
    const text = sound.slice(0, range.start) + fault.replace + sound.slice(range.end)
    if (file.endsWith('.ts')) {
      assertParses(text, file)
      assertKnown(text, names(file), file)
    }
    return { file, text }
  }
}

const partOf = cached(tokensOf)

function exactPlaces(text: string, find: string): readonly Range[] {
  const places: Range[] = []
  for (let at = text.indexOf(find); at >= 0; at = text.indexOf(find, at + find.length))
    places.push({ start: at, end: at + find.length })
  return places
}

function cached<T>(make: (key: string) => T): (key: string) => T {
  const made = new Map<string, { readonly value: T }>()
  return (key) => {
    const entry = made.get(key) ?? { value: make(key) }
    made.set(key, entry)
    return entry.value
  }
}

/** A fault that only throws for an unknown name would be noticed by any test. */
function assertKnown(text: string, original: ReadonlySet<string>, file: string): void {
  const declared = [...text.matchAll(/\b(?:const|catch) \(?(\w+)/g)].map(([, name]) => name)
  const known = new Set([...original, ...declared, ...Object.getOwnPropertyNames(globalThis)])
  const unknown = identifiersOf(text).filter((name) => !known.has(name))
  if (unknown.length > 0) throw new Error(`broken: ${file} has no ${unknown.join(', ')}`)
}

/** The names a text uses or declares; not those after a dot or of an object's members. */
function identifiersOf(text: string): readonly string[] {
  const names: string[] = []
  const visit = (node: ts.Node) => {
    if (ts.isIdentifier(node) && !isMember(node)) names.push(node.text)
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile('fault.ts', text, ts.ScriptTarget.Latest, true))
  return names
}

function isMember({ parent, pos }: ts.Identifier): boolean {
  const isNamed =
    ts.isPropertyAccessExpression(parent) || ts.isPropertyAssignment(parent) || ts.isPropertySignature(parent)
  return isNamed && parent.name.pos === pos
}

/** What is wrong with a list of faults, one line each: nothing, when each can be tried and a test is there to notice. */
export function flawsOf(
  faults: readonly Fault[],
  root: string,
  breakSource: Breaker = createBreaker(root),
): readonly string[] {
  const ids = faults.map(({ id }) => id)
  const testsOf = testFinder(root)
  return faults.flatMap((fault, index) => {
    const flaws: string[] = []
    try {
      const { file } = breakSource(fault)
      // It may be another rule that reads alike.
      if (file !== fault.file) flaws.push(`moved: its text is in ${file}, not in ${fault.file}`)
    } catch (flaw) {
      flaws.push((flaw as Error).message) // a breaker throws nothing else
    }
    if (ids.indexOf(fault.id) < index) flaws.push('its id is taken')
    const tests = testsOf(fault)
    if ('rule' in fault && tests.length === 0) flaws.push(`no test carries [${fault.rule}]`)
    for (const test of tests) if (!existsSync(join(root, test))) flaws.push(`stale: there is no ${test}`)
    return flaws.map((flaw) => `${fault.id}: ${flaw}`)
  })
}

/** Parses as Node does, which takes a tenth of the time of a compiler. */
export function assertParses(text: string, file: string): void {
  try {
    stripTypeScriptTypes(text)
  } catch {
    throw new Error(`broken: ${file} does not parse with it`)
  }
}
