import { availableParallelism } from 'node:os'

/*
 * Imported before everything else: libuv reads the size at the first use of its pool. Each thread keeps what memory it
 * once needed, and RS256 and the names of hosts need no more threads than there are cores. Passwords have threads
 * apart (password-threads.ts). An operator's own UV_THREADPOOL_SIZE stays.
 */
process.env['UV_THREADPOOL_SIZE'] ??= String(Math.min(4, Math.max(2, availableParallelism())))
