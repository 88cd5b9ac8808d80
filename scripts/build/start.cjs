// What the executable runs: the server, out of its own assets, and with what V8 compiled of it when it was built.
const { getRawAsset } = require('node:sea')
const { Script } = require('node:vm')

const read = (name) => Buffer.from(getRawAsset(name))
const options = { filename: 'lychgate.cjs', cachedData: read('lychgate.cache') }
new Script(read('lychgate.cjs').latin1Slice(), options).runInThisContext()(require)
