import { Type } from '@sinclair/typebox'
import { parseJson } from '../domain/strict-json.ts'
import type { Feature } from '../feature/feature.ts'
import { clientProbe } from './probe.ts'
import { hostRecords, member, readProtectedHost, startOfHost } from './rules.ts'

/**
 * Forward auth: a proxy asks about each request for an app that cannot sign users in. A protected host is a client of
 * its own, whose users sign in as to any other.
 */
export const forwardAuth: Feature = {
  spec: 'Forward auth',
  clientMetadata: {
    [member]: {
      operatorOnly: true,
      schema: Type.Object(
        {
          host: Type.String(),
          rules: Type.Optional(
            Type.Array(
              Type.Object({
                path: Type.String(),
                methods: Type.Optional(Type.Array(Type.String())),
                access: Type.Optional(Type.String()),
                groups: Type.Optional(Type.Array(Type.String())),
                second_factor: Type.Optional(Type.Boolean()),
              }),
            ),
          ),
        },
        {
          description:
            'A JSON file with the host that a proxy protects by this client, and the rules of its paths; see docs/forward-auth.md.',
        },
      ),
      readFile: (content: string) => parseJson(content),
      read: readProtectedHost,
      recordsOf: hostRecords,
      startOf: startOfHost,
    },
  },
  clientProbe,
  callers: 'browsers',
  atOrigin: true,
  load: async () => (await import('./plugin.ts')).forwardAuth,
}
