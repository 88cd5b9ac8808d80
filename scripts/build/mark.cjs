/**
 * Marks a code cache as made without the flags it was made with: as this process, which has none. V8 takes no cache
 * that was made with others. Arguments: the bundle and the cache.
 */
const { readFileSync, writeFileSync } = require('node:fs')
const { Script } = require('node:vm')

/** Where V8 notes the flags. */
const [from, to] = [12, 16]

const [bundle, file] = process.argv.slice(2)
const cachedData = readFileSync(file)
new Script('').createCachedData().copy(cachedData, from, from, to)
const { cachedDataRejected } = new Script(readFileSync(bundle, 'latin1'), { cachedData })
if (cachedDataRejected) throw new Error('V8 does not take the code cache it has made')
writeFileSync(file, cachedData)
