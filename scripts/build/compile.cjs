/**
 * Runs the bundle as the executable would, until its server has answered, and writes down what V8 compiled on the way.
 * Arguments: the bundle, where the cache goes, a folder with every asset, and one for data.
 */
const { readFileSync, writeFileSync } = require('node:fs')
const { get } = require('node:http')
const { join } = require('node:path')
const { Script } = require('node:vm')

const [bundle, cache, assets, data] = process.argv.slice(2)
const script = new Script(readFileSync(bundle, 'latin1'), { filename: 'lychgate.cjs' })
const sea = {
  isSea: () => true,
  getRawAsset: (name) => new Uint8Array(readFileSync(join(assets, name))).buffer,
}

process.stdout.write = (text) => {
  const [, issuer] = /^ *issuer +(\S+)$/m.exec(text) ?? []
  if (issuer !== undefined) get(`${issuer}/readyz`, (answer) => answer.resume().once('end', finish))
  return true
}
process.argv = [process.execPath, 'lychgate', 'dev', '--port', '0', '--data', data]
script.runInThisContext()((name) => (name === 'node:sea' ? sea : require(name)))

function finish() {
  writeFileSync(cache, script.createCachedData())
  process.exit(0)
}
