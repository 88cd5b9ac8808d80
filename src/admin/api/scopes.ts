import type { Config } from '../../config/schema.ts'
import type { Declared } from '../../feature/deps.ts'

/** Whether a server with this configuration has the admin API. */
export function isOffered({ admin, mode }: Config): boolean {
  return (admin.api ?? (mode === 'dev' ? 'on' : 'off')) === 'on'
}

/** The scopes of the admin API. */
export const scopes = {
  'admin:users:read': {
    group: 'Administration: users',
    access: 'read',
    description: 'Every user of this service',
    sensitive: true,
    operatorOnly: true,
    isOffered,
  },
  'admin:users:write': {
    group: 'Administration: users',
    access: 'write',
    description: 'Every user of this service',
    sensitive: true,
    operatorOnly: true,
    isOffered,
  },
  'admin:clients:read': {
    group: 'Administration: apps',
    access: 'read',
    description: 'Every app of this service',
    sensitive: true,
    operatorOnly: true,
    isOffered,
  },
  'admin:clients:write': {
    group: 'Administration: apps',
    access: 'write',
    description: 'Every app of this service',
    sensitive: true,
    operatorOnly: true,
    isOffered,
  },
  'admin:keys:read': {
    group: 'Administration: keys',
    access: 'read',
    description: 'The keys of this service',
    sensitive: true,
    operatorOnly: true,
    isOffered,
  },
  'admin:keys:write': {
    group: 'Administration: keys',
    access: 'write',
    description: 'The keys of this service',
    sensitive: true,
    operatorOnly: true,
    isOffered,
  },
  'admin:audit:read': {
    group: 'Administration: activity',
    access: 'read',
    description: 'What everyone did on this service, and its settings',
    sensitive: true,
    operatorOnly: true,
    isOffered,
  },
} as const satisfies Declared['scopes']

/** A scope of the admin API. */
export type AdminScope = keyof typeof scopes
