/**
 * Packages that most servers do not need. In the executable each is a script of its own, which scripts/build/start.cjs
 * runs when it is first required: the text of the code takes memory as long as the process lives.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { build, type Metafile, type Plugin } from 'esbuild'
import { bundleOptions, inAscii, root } from './bundle.ts'

const packages = ['@fastify/otel', '@simplewebauthn/server', 'nodemailer', 'pg', 'prom-client', 'qrcode']
/** How the code that requires one names its script. */
const scheme = 'lychgate:'

function assetOf(name: string): string {
  return `${name.replace('@', '').replace('/', '-')}.cjs`
}

/** The names of these scripts. */
export const packageAssets: readonly string[] = packages.map(assetOf)

/** Leaves these packages out of a bundle. */
export const packagesOnDemand: Plugin = {
  name: 'packages on demand',
  setup({ onResolve, onLoad }) {
    const [filter, namespace] = [new RegExp(`^(?:${packages.join('|')})$`), 'on-demand']
    onResolve({ filter }, ({ path }) => ({ path, namespace }))
    onLoad({ filter, namespace }, ({ path }) => ({
      contents: `module.exports = require('${scheme}${assetOf(path)}')`,
    }))
    onResolve({ filter: new RegExp(`^${scheme}`) }, ({ path }) => ({ path, external: true }))
  },
}

/** Writes the scripts of these packages into a folder, each a function of `require` and `module`. */
export function bundlePackages(folder: string): Promise<readonly Metafile[]> {
  return Promise.all(packages.map((name) => bundlePackage(name, `${folder}/${assetOf(name)}`)))
}

async function bundlePackage(name: string, outfile: string): Promise<Metafile> {
  const { metafile } = await build({
    ...bundleOptions,
    stdin: { contents: `module.exports = require('${name}')`, resolveDir: root },
    format: 'cjs',
    // All but the names, as in the bundle of the server.
    minifyWhitespace: true,
    minifySyntax: true,
    banner: { js: '(function(require,module){' },
    footer: { js: '})' },
    outfile,
  })
  writeFileSync(outfile, inAscii(readFileSync(outfile, 'utf8')))
  return metafile
}
