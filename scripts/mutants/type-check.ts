import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'

/** Names that are declared and not used, and code that is not reached: such a program runs. */
const harmless: ReadonlySet<number> = new Set([6133, 6138, 6192, 6196, 6198, 6199, 7027])

/**
 * Returns a function that tells whether a file of the project at `root` type-checks with another text. Only the file
 * itself is looked at, so a text that breaks a caller passes.
 */
export function createTypeCheck(root: string): (file: string, text: string) => boolean {
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile)
  const { options, fileNames } = ts.parseJsonConfigFileContent({ ...config, include: ['src'] }, ts.sys, root)
  const changed = new Map<string, string>()
  let version = 0
  const service = ts.createLanguageService({
    getCompilationSettings: () => options,
    getScriptFileNames: () => fileNames,
    getScriptVersion: (path) => (changed.has(path) ? String(version) : '0'),
    getScriptSnapshot: (path) => {
      const text = changed.get(path) ?? (ts.sys.fileExists(path) ? readFileSync(path, 'utf8') : undefined)
      return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text)
    },
    getCurrentDirectory: () => root,
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    fileExists: ts.sys.fileExists,
    readFile: ts.sys.readFile,
    readDirectory: ts.sys.readDirectory,
    directoryExists: ts.sys.directoryExists,
    getDirectories: ts.sys.getDirectories,
  })
  return (file, text) => {
    const path = join(root, file)
    version += 1
    changed.clear()
    changed.set(path, text)
    return service.getSemanticDiagnostics(path).every(({ code }) => harmless.has(code))
  }
}
