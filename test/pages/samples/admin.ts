import { type AdminSection, adminPath, adminSections } from '../../../src/admin/pages/admin-page.ts'
import { clientForm } from '../../../src/admin/pages/client-form.ts'
import { rareFields, typedOf } from '../../../src/admin/pages/upstream-form.ts'
import { readRecipe, weaknessesOf } from '../../../src/clients/recipes.ts'
import type { Rejection } from '../../../src/domain/model.ts'
import { declared } from '../../../src/features.ts'
import { explainRejection } from '../../../src/observability/explain.ts'
import { msg } from '../../../src/pages/i18n/i18n.ts'
import type { Pages } from '../../../src/pages/pages.ts'
import { upstreamPresets } from '../../../src/users/upstream-presets.ts'
import { hostileText } from './hostile-text.ts'

type AdminView = Extract<keyof Pages, `admin/${string}`>
type AdminSample = { [K in AdminView]: { readonly page: K; readonly model: Pages[K] } }[AdminView]

const day = 86_400
const now = 1_795_000_000
const alice = { name: 'Alice Example', username: 'alice' }

/** What every page of a section has. */
function common(section: AdminSection) {
  const sections = adminSections.map((each) => ({ section: each, url: adminPath(each) }))
  const frame = { sections, section, user: alice, accountUrl: '/account', signOutUrl: '/oauth/logout' }
  return { frame, root: '/admin', action: adminPath(section), hidden: { csrf: 'nQ2Vd0' } }
}

const rejected: Rejection = {
  id: '0f6f3e4c-5d7a-4c0b-9a6e-1d2c3b4a5f60',
  at: now,
  method: 'POST',
  path: '/api/oauth/token',
  status: 400,
  error: 'invalid_grant',
  why: 'the code was already used',
  rule: 'rfc6749-4.1.2-single-use',
  client: 'client_9Jp2bXqR7sTf',
}
const errors = [rejected]
// A clause is a link to another server, which the hostile texts would change.
const { clause: _, ...explanation } = explainRejection(rejected)
const recipe = readRecipe('outline')
const clientValues = {
  values: [
    { name: 'client_id', value: 'client_9Jp2bXqR7sTf' },
    { name: 'issuer', value: 'https://id.riverside.example' },
    { name: 'discovery', value: 'https://id.riverside.example/.well-known/openid-configuration' },
  ],
  settings: { where: 'environment', lines: recipe.settings.lines, notes: ['It needs HTTPS.'] },
}
const kid = 'h0RcZrOmF3qBGHvRs2V1cnYb1yQmE4wqkT5Q1o0cU9k'
const typed = {
  client_name: 'Portal',
  redirect_uris: 'https://portal.riverside.example/callback',
  post_logout_redirect_uris: '',
  consent: 'remember',
  scope: ['courses:read'],
  resources: [],
  client_uri: 'https://portal.riverside.example',
  policy_uri: '',
  tos_uri: '',
} as const
const choices = {
  kind: 'web',
  typed,
  listed: clientForm(declared).listed,
  scopes: [{ name: 'courses:read', group: 'Courses', description: 'Titles, lessons and schedules' }],
  resources: [{ identifier: 'https://api.riverside.example', name: 'Library' }],
} as const
const group = { id: 'group_1', name: 'Teachers', description: 'They teach', createdAt: now, updatedAt: now }

/** Every admin page. */
export const adminPages = {
  'admin-overview': {
    page: 'admin/overview',
    model: {
      ...common('overview'),
      counts: { users: 1240, clients: 12, groups: 8 },
      most: 10_000,
      grants: 3400,
      days: [12, 40, 3, 0, 55, 61, 9].map((count, index) => ({ day: index, at: index * day, count })),
      errors,
      findings: [
        {
          check: 'rate limits',
          level: 'warning',
          said: 'are off: one client can send any number of requests',
          change: ['LYCHGATE_RATE_LIMITS=on', 'rateLimits: on   (in the file)'],
        },
        {
          check: 'disk',
          level: 'problem',
          said: 'is nearly full',
          expected: 'at least 1024 MiB free',
          found: '40 MiB free in /var/lib/lychgate',
        },
      ],
      clientsAgoSeconds: 120,
      keys: [
        { algorithm: 'ES256', ageSeconds: 30 * day },
        { algorithm: 'HS256', ageSeconds: day },
      ],
      steps: ['app', 'user', 'api'],
      needsFactor: true,
      factorUrls: { passkeys: '/account/passkeys', codes: '/account/one-time-codes' },
    },
  },
  'admin-factor': {
    page: 'admin/factor',
    model: {
      ...common('overview'),
      passkeysUrl: '/account/passkeys',
      codesUrl: '/account/one-time-codes',
    },
  },
  'admin-users': {
    page: 'admin/users',
    model: {
      ...common('users'),
      users: [
        {
          ...alice,
          url: '/admin/users/1',
          addedAgoSeconds: day,
          locked: true,
          waiting: true,
          email: 'a@b.test',
        },
      ],
      search: '',
      only: '',
      nextUrl: '/admin/users?after=x',
    },
  },
  'admin-access': {
    page: 'admin/access',
    model: {
      ...common('users'),
      username: 'alice',
      url: '/admin/users/1',
      typed: { client: 'Payroll', at: '2026-11-29T09:00' },
      explained: {
        at: 1_795_000_000,
        result: 'failed',
        rules: [
          { about: 'user', rule: 'a', result: 'passed', why: 'the user is not locked' },
          { about: 'group', rule: 'b', result: 'failed', why: 'the user is in none of the groups' },
          {
            about: 'policy',
            rule: 'c',
            result: 'not known',
            why: 'the log does not record settings and files',
          },
        ],
      },
    },
  },
  'admin-factors': {
    page: 'admin/factors',
    model: {
      ...common('users'),
      users: [
        { username: 'alice', url: '/admin/users/1', password: true, codes: true, passkeys: 2 },
        {
          username: 'bob',
          url: '/admin/users/2',
          password: false,
          codes: false,
          passkeys: 0,
          lacks: 'passkey',
        },
        {
          ...{ username: 'carol', url: '/admin/users/3', password: true, codes: false, passkeys: 0 },
          ...{ lacks: 'second factor', from: Date.UTC(2027, 0, 31) / 1000 },
        },
      ],
      only: 'policy',
      usersUrl: '/admin/users',
      nextUrl: '/admin/users/factors?after=x',
    },
  },
  'admin-user-invite': {
    page: 'admin/user-invite',
    model: {
      ...common('users'),
      typed: {
        email: 'carol@riverside.example',
        givenName: 'Carol',
        familyName: 'Cooper',
        username: 'carol',
      },
      canSend: true,
      problem: msg('admin.user.noGroup'),
    },
  },
  'admin-invite-list': {
    page: 'admin/invite-list',
    model: {
      ...common('users'),
      typed: { list: 'email,given_name\ncarol@riverside.example,Carol\ndora,Dora', group: 'Teachers' },
      groups: ['Staff', 'Teachers'],
      canSend: true,
      rejected: 'no user was invited. line 3: email must be an email address',
      problem: msg('admin.rejected'),
    },
  },
  'admin-invited': {
    page: 'admin/invited',
    model: {
      ...common('users'),
      invited: [
        {
          username: 'carol',
          invitation: { link: 'https://id.riverside.example/link?code=lyc_link_x', expires_at: now },
        },
        { username: 'dora', invitation: { sent_to: 'dora@riverside.example', expires_at: now } },
      ],
      url: '/admin/users',
    },
  },
  'admin-user-link': {
    page: 'admin/user-link',
    model: {
      ...common('users'),
      link: { link: 'https://id.riverside.example/link?code=lyc_link_x', expires_at: now },
      name: 'carol',
      userUrl: '/admin/users/1',
    },
  },
  'admin-user': {
    page: 'admin/user',
    model: {
      ...common('users'),
      frame: { ...common('users').frame, done: 'group-added' },
      user: { ...alice, id: 'user_9Jp2bXqR7sTf', email: 'alice@riverside.example', emailVerified: true },
      addedAgoSeconds: 30 * day,
      lockedAgoSeconds: 60,
      failures: 12,
      waysIn: { password: true, passkeys: 2, codes: true },
      groups: [
        { id: 'group_1', name: 'Teachers', url: '/admin/groups/group_1', isDirect: true },
        { id: 'group_2', name: 'Staff', url: '/admin/groups/group_2', isDirect: false },
      ],
      otherGroups: ['Students'],
      typedGroup: 'Stud',
      sessions: [{ browser: 'Firefox, Linux', from: '203.0.113.0/24', agoSeconds: 90 }],
      apps: [{ id: 'client_1', name: 'Course Sync CLI', grants: 2 }],
      appCount: 30,
      attributes: [
        { name: 'department', label: 'Department', values: [], value: 'physics' },
        { name: 'tutor', label: 'Tutor', values: ['true', 'false'], value: 'true' },
      ],
      hasTokens: true,
      url: '/admin/users/1',
      problem: msg('admin.user.noGroup'),
    },
  },
  'admin-user-tokens': {
    page: 'admin/user-tokens',
    model: {
      ...common('users'),
      name: 'alice',
      tokens: [
        {
          id: '3q2-8fAAAAAA',
          name: 'Nightly export',
          scope: ['admin:users:read', 'admin:clients:read'],
          usedAgoSeconds: 3 * 3600,
          expiresAt: now + 30 * day,
        },
        { id: '4q2-8fAAAAAA', name: 'CI', scope: ['admin:users:write'], expiresAt: now + 90 * day },
      ],
      created: `lyc_personal_${'x'.repeat(43)}`,
      creation: {
        typed: { name: 'Nightly', scope: ['admin:users:read'], days: 90 },
        scopes: ['admin:users:read', 'admin:users:write'],
        days: [7, 30, 90, 365],
      },
      userUrl: '/admin/users/1',
      problem: msg('admin.tokens.noScope'),
    },
  },
  'admin-user-edit': {
    page: 'admin/user-edit',
    model: {
      ...common('users'),
      user: alice,
      typed: { username: 'alice', email: 'alice@riverside.example', isVerified: true },
      claims: [
        { claim: 'given_name', value: 'Alice' },
        { claim: 'website', value: 'alice', fault: 'url' },
      ],
      problem: msg('admin.invite.taken'),
      attributes: [
        { name: 'department', label: 'Department', type: 'choice', values: ['physics'], value: 'physics' },
        { name: 'level', label: 'Level', type: 'number', values: [], value: 'high', fault: 'number' },
        { name: 'tutor', label: 'Tutor', type: 'boolean', values: ['true', 'false'], value: 'true' },
      ],
      url: '/admin/users/1',
    },
  },
  'admin-user-password': {
    page: 'admin/user-password',
    model: { ...common('users'), user: alice, url: '/admin/users/1', problem: msg('password.length') },
  },
  'admin-groups': {
    page: 'admin/groups',
    model: {
      ...common('groups'),
      groups: [{ ...group, url: '/admin/groups/group_1' }],
      search: 't',
      nextUrl: '/admin/groups?after=x',
      typed: { name: '', description: '' },
      administrators: 'admins',
    },
  },
  'admin-upstreams': {
    page: 'admin/upstreams',
    model: {
      ...common('upstreams'),
      upstreams: [
        {
          name: 'Riverside School District',
          issuer: 'https://login.riverside.example',
          isEnabled: true,
          isConfigured: true,
          url: '/admin/upstreams/work',
        },
        {
          name: 'Library',
          issuer: 'https://id.library.example',
          isEnabled: false,
          isConfigured: false,
          url: '/admin/upstreams/library',
        },
      ],
      addUrl: '/admin/add-upstream',
    },
  },
  'admin-upstream-add': {
    page: 'admin/upstream-add',
    model: {
      ...common('upstreams'),
      typed: typedOf({ issuer: 'https://login.microsoftonline.com/TENANT/v2.0' }),
      rare: rareFields,
      presets: Object.entries(upstreamPresets).map(([id, { name }]) => ({ id, name })),
      advice: upstreamPresets['microsoft']?.advice ?? '',
      url: '/admin/upstreams',
      problem: msg('admin.rejected'),
      rejected: 'another upstream has this id or issuer',
    },
  },
  'admin-upstream': {
    page: 'admin/upstream',
    model: {
      ...common('upstreams'),
      hidden: { version: 'x' },
      name: 'Riverside School District',
      typed: typedOf({
        id: 'work',
        name: 'Riverside School District',
        issuer: 'https://login.riverside.example',
        clientId: 'lychgate',
        firstSignIn: 'domain',
        domains: ['riverside.example'],
        groups: { teachers: 'Staff', cooks: 'Kitchen' },
      }),
      rare: rareFields,
      isConfigured: false,
      redirectUri: 'https://id.example.test/login/upstream/work/callback',
      tryUrl: '/login/upstream/work/try',
      url: '/admin/upstreams/work/delete',
    },
  },
  'admin-group': {
    page: 'admin/group',
    model: {
      ...common('groups'),
      group,
      isOfAdministrators: true,
      typed: { name: 'Teachers', description: 'They teach', parent: 'Staff', join: '' },
      typedLate: [
        { label: msg('admin.name'), values: ['Teachers and assistants'] },
        { label: msg('admin.group.parent'), values: ['Staff', 'School'] },
      ],
      members: [{ ...alice, id: 'user_1', url: '/admin/users/1' }],
      nextUrl: '/admin/groups/group_1?after=x',
      url: '/admin/groups/group_1',
      about: 'member',
      problem: msg('admin.group.noUser'),
    },
  },
  'admin-clients': {
    page: 'admin/clients',
    model: {
      ...common('clients'),
      clients: [
        {
          id: 'client_9Jp2bXqR7sTf',
          name: 'Course Sync CLI',
          kind: 'native',
          origin: 'registered',
          url: '/admin/clients/1',
          addedAgoSeconds: day,
          locked: true,
        },
      ],
      search: '',
      only: 'unused',
      nextUrl: '/admin/clients?after=x',
    },
  },
  'admin-client-kind': {
    page: 'admin/client-kind',
    model: {
      ...common('clients'),
      kinds: ['web', 'native', 'machine', 'device', 'api'],
      recipes: [
        { id: 'grafana', name: 'Grafana', isTried: false },
        { id: 'gitea', name: 'Gitea', isTried: true },
      ],
      chosen: { recipe: 'gitea', url: 'http://git.riverside.example' },
      problem: msg('admin.client.recipe.urlHint'),
    },
  },
  'admin-client-add': {
    page: 'admin/client-add',
    model: { ...common('clients'), ...choices, recipe, weaknesses: weaknessesOf(recipe) },
  },
  'admin-client-edit': {
    page: 'admin/client-edit',
    model: {
      ...common('clients'),
      ...choices,
      name: 'Portal',
      url: '/admin/clients/1',
      rejected: 'redirect_uri must be an https or http loopback URI',
      problem: msg('admin.rejected'),
    },
  },
  'admin-client-secret': {
    page: 'admin/client-secret',
    model: {
      ...common('clients'),
      ...clientValues,
      name: 'Portal',
      kind: 'web',
      secret: 'lyc_secret_7mK2bXqR7sTf9Jp2bXqR7sTf9Jp2bXqR7sT',
      url: '/admin/clients/1',
      isNew: true,
    },
  },
  'admin-client': {
    page: 'admin/client',
    model: {
      ...common('clients'),
      client: {
        id: 'client_9Jp2bXqR7sTf',
        name: 'Portal',
        origin: 'integration',
        redirectUris: ['https://portal.riverside.example/callback'],
        consent: 'remember',
      },
      kind: 'web',
      authentication: 'client_secret_basic',
      grantTypes: ['authorization_code', 'refresh_token'],
      scope: ['openid', 'courses:read'],
      resources: ['https://api.riverside.example'],
      addedAgoSeconds: 30 * day,
      usedAgoSeconds: 60,
      lockedAgoSeconds: 60,
      registeredFrom: '203.0.113.0/24',
      hasSecret: true,
      oldSecretUntil: now,
      keys: [{ kid, algorithm: 'ES256' }],
      keysUrl: 'https://portal.riverside.example/keys',
      canHaveKeys: true,
      allowed: [{ id: 'group_1', name: 'Teachers', url: '/admin/groups/group_1' }],
      hasAccess: true,
      typedGroup: '',
      canChange: true,
      url: '/admin/clients/1',
      ...clientValues,
      lastRejection: {
        explanation,
        remedy: 'pkce',
        settings: ['GF_AUTH_GENERIC_OAUTH_USE_PKCE=true'],
        canLeavePkceOut: true,
      },
    },
  },
  'admin-client-keys': {
    page: 'admin/client-keys',
    model: {
      ...common('clients'),
      name: 'Portal',
      keys: [{ kid, algorithm: 'ES256' }],
      typed: { add: '{"keys":[]}', uri: '', remove: kid },
      url: '/admin/clients/1',
      rejected: 'jwks has no key for ES256, PS256, RS256, EdDSA',
      problem: msg('admin.rejected'),
    },
  },
  'admin-client-try': {
    page: 'admin/client-try',
    model: {
      ...common('clients'),
      name: 'Portal',
      typedUser: 'alice',
      preview: {
        allowed: false,
        scope: 'openid profile groups',
        contents: [
          {
            of: 'id_token',
            names: ['sub', 'groups'],
            claims: { sub: 'user_1', groups: ['Teachers', 'Staff'] },
          },
          { of: 'userinfo', names: ['sub'] },
        ],
      },
      url: '/admin/clients/1',
    },
  },
  'admin-keys': {
    page: 'admin/keys',
    model: {
      ...common('keys'),
      keys: [
        {
          id: kid,
          name: 'ES256',
          state: msg('admin.keys.waiting', { from: { moment: now } }),
          retireUrl: '/admin/keys/1/retire',
        },
        {
          id: '3',
          name: msg('admin.keys.handle'),
          state: msg('admin.keys.active', { ago: { duration: day } }),
          retireUrl: '/admin/keys/3/retire',
        },
        {
          id: kid,
          name: 'RS256',
          state: msg('admin.keys.verifies', { until: { moment: now } }),
          retireUrl: '/admin/keys/2/retire',
        },
        { id: kid, name: 'EdDSA', state: msg('admin.keys.retired', { ago: { ago: day } }) },
      ],
      rotationSeconds: 90 * day,
    },
  },
  'admin-apis': {
    page: 'admin/apis',
    model: {
      ...common('apis'),
      scopes: [
        { name: 'courses:read', group: 'Courses', description: 'Titles, lessons and schedules' },
        {
          name: 'invoices:read',
          group: 'Invoices',
          description: 'Amounts and due dates',
          url: '/admin/apis/scopes/invoices%3Aread',
        },
      ],
      resources: [
        { identifier: 'https://id.riverside.example', name: 'Riverside', scopes: ['courses:read'] },
        {
          identifier: 'https://api.riverside.example/invoices',
          name: 'Invoices',
          scopes: ['invoices:read', 'invoices:write'],
          url: '/admin/apis/resources/1',
        },
      ],
    },
  },
  'admin-api-scope': {
    page: 'admin/api-scope',
    model: {
      ...common('apis'),
      name: 'invoices:read',
      typed: {
        name: 'invoices:read',
        group: 'Invoices',
        description: 'Amounts and due dates',
        access: 'read',
        sensitive: true,
      },
      deleteUrl: '/admin/apis/scopes/1/delete',
      backUrl: '/admin/apis',
    },
  },
  'admin-api-scope-new': {
    page: 'admin/api-scope',
    model: {
      ...common('apis'),
      typed: { name: 'openid', group: '', description: '', access: 'write', sensitive: false },
      backUrl: '/admin/apis',
      rejected: 'the server gives this scope its meaning',
      problem: msg('admin.rejected'),
    },
  },
  'admin-api-resource': {
    page: 'admin/api-resource',
    model: {
      ...common('apis'),
      identifier: 'https://api.riverside.example/invoices',
      typed: { identifier: '', name: 'Invoices', scopes: ['invoices:read'], tokenFormat: 'jwt' },
      offered: ['courses:read', 'invoices:read', 'invoices:write'],
      deleteUrl: '/admin/apis/resources/1/delete',
      backUrl: '/admin/apis',
    },
  },
  'admin-api-resource-new': {
    page: 'admin/api-resource',
    model: {
      ...common('apis'),
      typed: { identifier: 'https://api.riverside.example/#x', name: '', scopes: [], tokenFormat: 'opaque' },
      offered: ['courses:read'],
      backUrl: '/admin/apis',
      rejected: 'identifier must be an absolute URI without a fragment, of up to 500 characters',
      problem: msg('admin.rejected'),
    },
  },
  'admin-keys-rotate': {
    page: 'admin/keys-rotate',
    model: {
      ...common('keys'),
      algorithms: [
        { algorithm: 'ES256', name: 'ES256', isTicked: true },
        { algorithm: 'HS256', name: msg('admin.keys.handle'), isTicked: false },
      ],
      isNow: false,
      aheadSeconds: day,
      cacheSeconds: 3600,
      backUrl: '/admin/keys',
      problem: msg('admin.keys.rotate.none'),
    },
  },
  'admin-act': {
    page: 'admin/act',
    model: {
      ...common('keys'),
      title: msg('admin.keys.retire', { name: 'h0RcZrOm' }),
      about: msg('admin.keys.retire.about'),
      more: [
        msg('admin.keys.retire.handle'),
        msg('admin.keys.retire.handleOld', { since: { moment: now } }),
        msg('admin.keys.retire.grants', { count: 3400 }),
        msg('admin.keys.retire.browsers'),
        msg('admin.keys.retire.sealedStay'),
        msg('admin.keys.retire.successor', { reload: { duration: 60 } }),
      ],
      submit: msg('admin.keys.retire', { name: 'h0RcZrOm' }),
      typed: 'h0RcZrOm',
      backUrl: '/admin/keys',
      problem: msg('admin.act.other', { name: 'h0RcZrOm' }),
    },
  },
  'admin-audit': {
    page: 'admin/audit',
    model: {
      ...common('audit'),
      events: [
        {
          name: 'key-retired',
          at: now,
          by: 'operator',
          from: '203.0.113.0/24',
          actor: 'alice',
          userId: 'user_1',
          clientId: 'client_1',
          clientName: 'Portal',
          facts: { key: kid, retiredAt: now },
        },
      ],
      names: ['key-retired', 'sign-in'],
      filter: {
        event: 'key-retired',
        user: 'alice',
        client: 'client_1',
        since: '2026-11-01T08:00',
        until: '',
      },
      follows: true,
      followUrl: '/admin/audit',
      exportUrl: '/admin/audit/export',
      csvUrl: '/admin/audit/export?format=csv',
      nextUrl: '/admin/audit?after=x',
    },
  },
  'admin-settings': {
    page: 'admin/settings',
    model: {
      ...common('settings'),
      version: '0.1.0 (commit 4f1c0de)',
      mode: 'serve',
      set: [
        {
          option: 'issuer',
          value: 'https://id.riverside.example',
          source: 'variable',
          name: 'LYCHGATE_ISSUER',
        },
        { option: 'secret', value: '***', source: 'file', name: '/etc/lychgate/lychgate.yaml' },
      ],
      usual: [{ option: 'lifetimes.codeSeconds', value: '60', source: 'default' }],
    },
  },
  'admin-errors': {
    page: 'admin/errors',
    model: {
      ...common('errors'),
      errors,
      ofSignIns: false,
      otherUrl: '/admin/errors?only=sign-ins',
      nextUrl: '/admin/errors?after=x',
      explanation: {
        headline: 'POST /api/oauth/token was rejected with 400 invalid_grant',
        why: 'the code was already used',
        rule: 'rfc6749-4.1.2-single-use',
        json: {},
        sections: { '': { client: 'client_1', at: now, received: 'a code' } },
      },
    },
  },
} as const satisfies Readonly<Record<string, AdminSample>>

/** Words that choose a text or a value of the form: the server writes them. */
const chosen = new Set([
  'remedy',
  'claim',
  'key',
  'kind',
  'section',
  'only',
  'type',
  'fault',
  'steps',
  'level',
  'about',
  'done',
  'consent',
  'kinds',
  'algorithm',
])

/** Puts hostile text wherever a model has text from elsewhere. An address stays one of this server. */
function withHostileText(value: unknown, name = ''): unknown {
  if (chosen.has(name) && !(typeof value === 'object' && value !== null && 'key' in value)) return value
  // The values of a boolean attribute.
  if (value === 'true' || value === 'false') return value
  if (typeof value === 'string') return value.startsWith('/') ? `/${hostileText}` : hostileText
  if (Array.isArray(value)) return value.map((one) => withHostileText(one, name))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withHostileText(one, key)]))
}

/** The same with hostile text wherever text can be. */
export const hostileAdminPages = Object.fromEntries(
  Object.entries(adminPages).map(([name, { page, model }]) => [
    `hostile-${name}`,
    { page, model: withHostileText(model) } as AdminSample, // only texts differ
  ]),
)
