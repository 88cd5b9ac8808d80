// What the executable runs: the server, out of its own assets, and with what V8 compiled of it when it was built, unless
// that was done on another platform.
const { getAssetKeys, getRawAsset } = require('node:sea')
const { Script } = require('node:vm')

const read = (name) => Buffer.from(getRawAsset(name))
const cache = 'lychgate.cache'
const options = {
  filename: 'lychgate.cjs',
  ...(getAssetKeys().includes(cache) && { cachedData: read(cache) }),
}
new Script(read('lychgate.cjs').latin1Slice(), options).runInThisContext()(require)
