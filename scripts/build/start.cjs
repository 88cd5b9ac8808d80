// What the executable runs: the server, out of its own assets, and with what V8 compiled of it when it was built, unless
// that was done on another platform.
const { getAssetKeys, getRawAsset } = require('node:sea')
const { Script } = require('node:vm')

const read = (name) => Buffer.from(getRawAsset(name))
const cache = 'lychgate.cache'
run('lychgate.cjs', getAssetKeys().includes(cache) && { cachedData: read(cache) })(load)

function run(filename, options) {
  return new Script(read(filename).latin1Slice(), { filename, ...options }).runInThisContext()
}

/** Returns a module of Node, or a package that scripts/build/packages-on-demand.ts made a script of its own. */
function load(name) {
  const [, asset] = name.split('lychgate:')
  if (asset === undefined) return require(name)
  const module = { exports: {} }
  run(asset)(require, module)
  return module.exports
}
