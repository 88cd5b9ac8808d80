import { availableParallelism } from 'node:os'

/*
 * Imported before everything else: libuv reads the size at the first use of its pool. Each thread that has checked a
 * password keeps the 19 MiB it took, so there are as many as can check at once (passwords.ts) and one for everything
 * else, where Node has four. An operator's own UV_THREADPOOL_SIZE stays.
 */
process.env['UV_THREADPOOL_SIZE'] ??= String(Math.min(4, Math.max(2, availableParallelism())))
