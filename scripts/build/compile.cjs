/**
 * Runs the bundle as the executable would, until its server has answered, and writes down what V8 compiled on the way.
 * Arguments: the bundle, where the cache goes, a folder with every asset, and one for data.
 */
const { scryptSync } = require('node:crypto')
const { readdirSync, readFileSync, writeFileSync } = require('node:fs')
const { get } = require('node:http')
const { join } = require('node:path')
const { Script } = require('node:vm')

const [bundle, cache, assets, data] = process.argv.slice(2)
const script = new Script(readFileSync(bundle, 'latin1'), { filename: 'lychgate.cjs' })
const sea = {
  isSea: () => true,
  getAssetKeys: () => readdirSync(assets, { recursive: true }),
  getRawAsset: (name) => new Uint8Array(readFileSync(join(assets, name))).buffer,
}

process.stdout.write = (text) => {
  const [, issuer] = /^ *issuer +(\S+)$/m.exec(text) ?? []
  if (issuer !== undefined) get(`${issuer}/readyz`, (answer) => answer.resume().once('end', finish))
  return true
}
// A busy machine must not show: the clock stands still, no timer ends, and the key is derived at once.
const [now, timer] = [Date.now(), { ref() {}, unref() {}, refresh() {} }]
Date.now = () => now
globalThis.setTimeout = globalThis.setInterval = () => timer
const modules = {
  'node:crypto': { ...require('node:crypto'), scrypt: (...args) => args.pop()(null, scryptSync(...args)) },
  'node:sea': sea,
}

process.argv = [process.execPath, 'lychgate', 'dev', '--port', '0', '--data', data]
script.runInThisContext()((name) => modules[name] ?? require(name))

function finish() {
  writeFileSync(cache, script.createCachedData())
  process.exit(0)
}
