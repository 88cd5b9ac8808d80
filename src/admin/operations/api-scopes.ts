import type { Config } from '../../config/schema.ts'
import type { Declared } from '../../feature/deps.ts'

/** Whether a server with this configuration has the admin API. */
export function isOffered({ admin, mode }: Config): boolean {
  return (admin.api ?? (mode === 'dev' ? 'on' : 'off')) === 'on'
}

function scopeOf<A extends 'read' | 'write'>(group: string, access: A, description: string) {
  return {
    group: `Administration: ${group}`,
    access,
    description,
    sensitive: true,
    operatorOnly: true,
    isOffered,
  } as const
}

/** The scopes of the admin API. */
export const scopes = {
  'admin:users:read': scopeOf('users', 'read', 'Every user of this service'),
  'admin:users:write': scopeOf('users', 'write', 'Every user of this service'),
  'admin:clients:read': scopeOf('apps', 'read', 'Every app of this service'),
  'admin:clients:write': scopeOf('apps', 'write', 'Every app of this service'),
  'admin:upstreams:read': scopeOf('sign-in elsewhere', 'read', 'The servers that users sign in with'),
  'admin:upstreams:write': scopeOf('sign-in elsewhere', 'write', 'The servers that users sign in with'),
  'admin:keys:read': scopeOf('keys', 'read', 'The keys of this service'),
  'admin:keys:write': scopeOf('keys', 'write', 'The keys of this service'),
  'admin:audit:read': scopeOf('activity', 'read', 'What everyone did on this service, and its settings'),
} as const satisfies Declared['scopes']

/** A scope of the admin API. */
export type AdminScope = keyof typeof scopes
