/** Administrators of groups, on PostgreSQL: their tests with a database of it. */
import t from 'tap'
import { startPostgres } from './postgres-server.ts'

process.env['TEST_POSTGRES'] = (await startPostgres(t)).url
await import('../admin/delegation.test.ts')
