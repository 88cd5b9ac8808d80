import { availableParallelism } from 'node:os'

/*
 * Imported before everything else: libuv reads the size at the first use of its pool. Each thread that has checked a
 * password keeps the 19 MiB it used, so the pool has as many threads as there are concurrent checks (passwords.ts)
 * plus one, where Node has four. An operator's own UV_THREADPOOL_SIZE stays.
 */
process.env['UV_THREADPOOL_SIZE'] ??= String(Math.min(4, Math.max(2, availableParallelism())))
