import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import type { Fault } from '../../test/mutants/fault.ts'

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

/**
 * The text of a fault's file with the fault in it.
 * @throws {Error} one line that says why the fault cannot be tried.
 */
export function faultyText({ file, find, replace }: Fault, root: string): string {
  const path = join(root, file)
  const parts = (existsSync(path) ? readFileSync(path, 'utf8') : '').split(find)
  if (parts.length < 2) throw new Error(`stale: ${file} no longer contains ${JSON.stringify(find)}`)
  if (parts.length > 2) {
    throw new Error(`ambiguous: ${file} contains ${JSON.stringify(find)} ${parts.length - 1} times`)
  }
  const text = parts.join(replace)
  if (file.endsWith('.ts')) {
    assertParses(text, file)
    assertKnown(text, parts.join(find), file)
  }
  return text
}

/** A fault that only throws for an unknown name would be noticed by any test. */
function assertKnown(text: string, original: string, file: string): void {
  const declared = [...text.matchAll(/\b(?:const|catch) \(?(\w+)/g)].map(([, name]) => name)
  const known = new Set([...identifiersOf(original), ...declared, ...Object.getOwnPropertyNames(globalThis)])
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
export function flawsOf(faults: readonly Fault[], root: string): readonly string[] {
  const ids = faults.map(({ id }) => id)
  const testsOf = testFinder(root)
  return faults.flatMap((fault, index) => {
    const flaws: string[] = []
    try {
      faultyText(fault, root)
    } catch (flaw) {
      flaws.push((flaw as Error).message) // faultyText throws nothing else
    }
    if (ids.indexOf(fault.id) < index) flaws.push('its id is taken')
    const tests = testsOf(fault)
    if ('rule' in fault && tests.length === 0) flaws.push(`no test carries [${fault.rule}]`)
    for (const test of tests) if (!existsSync(join(root, test))) flaws.push(`stale: there is no ${test}`)
    return flaws.map((flaw) => `${fault.id}: ${flaw}`)
  })
}

function assertParses(text: string, file: string): void {
  const { diagnostics = [] } = ts.transpileModule(text, { reportDiagnostics: true, fileName: file })
  if (diagnostics.length > 0) throw new Error(`broken: ${file} does not parse with it`)
}
