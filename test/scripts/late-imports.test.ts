/** What is imported late becomes a file of its own in the npm package, where a CommonJS module has a default only. */
import { globSync, readFileSync } from 'node:fs'
import t from 'tap'

const lateImport = /const \{([^}]*)\} = await import\('([^.'][^']*)'\)/g

const imports = globSync('src/**/*.ts').flatMap((file) =>
  [...readFileSync(file, 'utf8').matchAll(lateImport)].map(([, names = '', specifier = '']) => ({
    file,
    specifier,
    names: names.split(',').map((name) => name.split(':')[0]?.trim() ?? ''),
  })),
)

t.test('of a CommonJS package that is imported late, nothing but the default is taken', async (t) => {
  t.ok(imports.some(({ specifier }) => specifier === 'qrcode'))
  for (const { file, specifier, names } of imports.filter(
    ({ specifier }) => !specifier.startsWith('node:'),
  )) {
    // Node gives the namespace of a CommonJS module this name, and no other.
    const isCommonJs = 'module.exports' in (await import(specifier))
    if (isCommonJs) t.strictSame(names, ['default'], `${file}: ${specifier}`)
  }
})
