import type { FastifyInstance } from 'fastify'
import type { Setting } from '../../config/setting.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { version } from '../../system/version.ts'
import { readSettings } from '../operations/activity.ts'
import { sendTestEmail } from '../operations/test-email.ts'
import type { AdminModel, AdminPage } from './admin-page.ts'
import { performAt } from './call.ts'

declare module '../../pages/pages.ts' {
  interface Pages {
    'admin/settings': AdminModel & {
      /** With the commit that it was built from. */
      readonly version: string
      /** Whether it is a development server. */
      readonly mode: string
      /** What someone set. */
      readonly set: readonly ShownSetting[]
      /** What has its default. */
      readonly usual: readonly ShownSetting[]
    }
  }
}

interface ShownSetting extends Omit<Setting, 'value'> {
  /** As it is written in the file; absent: it has none. */
  readonly value?: string
}

/**
 * Every option in effect and where it comes from, without secrets. Nothing is changed here: files say what applies. Its
 * form sends a test email to the administrator.
 */
export function settingsPage(_app: FastifyInstance, deps: PageDeps): AdminPage {
  const written = ({ value, ...setting }: Setting): ShownSetting => {
    if (value === undefined) return setting
    return { ...setting, value: typeof value === 'string' ? value : JSON.stringify(value) }
  }
  let running: string | undefined
  return {
    path: '/settings',
    section: 'settings',
    show: async (visit) => {
      const { mode, items } = await performAt(deps, visit, readSettings, {})
      const all = items as readonly Setting[] // as the operation responds
      running ??= version()
      return visit.render('admin/settings', {
        version: running,
        mode: String(mode),
        set: all.filter(({ source }) => source !== 'default').map(written),
        usual: all.filter(({ source }) => source === 'default').map(written),
      })
    },
    submit: async (visit) => {
      await performAt(deps, visit, sendTestEmail, { sub: visit.user.id })
      return visit.done('email-sent', '/settings')
    },
  }
}
