import type { Text } from '../../../src/domain/text.ts'
import { msg } from '../../../src/pages/i18n/i18n.ts'
import { hostileText } from './hostile-text.ts'
import type { Sample } from './pages.ts'

const hidden = { code: 'lyc_link_3vQ8', csrf: 'nQ2Vd0' }
const typed = { username: '', email: '', givenName: '', familyName: '' }
const creation = { options: '{}', name: '' }

/** The pages of one-time links, and the page that requests one. */
export const linkPages = {
  'link-first-user': {
    page: 'link-password',
    model: { action: '/link', hidden, purpose: 'first-user', typed, creation },
  },
  'link-first-user-problem': {
    page: 'link-password',
    model: {
      action: '/link',
      hidden,
      purpose: 'first-user',
      typed: { username: 'ada lovelace', email: 'ada@example.org', givenName: 'Ada', familyName: 'Lovelace' },
      problem: msg('link.username.invalid'),
      creation,
    },
  },
  'link-invitation': {
    page: 'link-password',
    model: { action: '/link', hidden, purpose: 'invitation', username: 'ada@example.org', typed, creation },
  },
  'link-reset-with-codes': {
    page: 'link-password',
    model: { action: '/link', hidden, purpose: 'password-reset', username: 'ada', typed },
  },
  'link-reset': {
    page: 'link-password',
    model: {
      action: '/link',
      hidden,
      purpose: 'password-reset',
      username: 'ada',
      typed,
      problem: msg('password.differs'),
      creation,
    },
  },
  'link-undo': {
    page: 'link-password',
    model: {
      action: '/link',
      hidden,
      purpose: 'email-undo',
      username: 'ada',
      email: 'ada@example.org',
      typed,
    },
  },
  'link-email': {
    page: 'link-email',
    model: { action: '/link', hidden, email: 'ada@example.org', username: 'ada' },
  },
  'upstream-tried': {
    page: 'upstream-tried',
    model: {
      name: 'Riverside School District',
      claims: [
        { name: 'sub', value: '248289761001' },
        { name: 'email', value: 'ann@riverside.example' },
        { name: 'email_verified', value: 'true' },
        { name: 'groups', value: '["teachers","cooks"]' },
      ],
      outcome: 'new',
      username: 'ann@riverside.example',
      groups: ['Staff', 'Kitchen'],
      url: '/admin/upstreams/work',
    },
  },
  'link-done': {
    page: 'link-done',
    model: {
      title: msg('link.saved'),
      about: msg('link.saved.about'),
      link: { url: '/login?interaction=lyi_3vQ8', label: msg('link.goOn') },
    },
  },
  'forgot-password': {
    page: 'forgot-password',
    model: { action: '/forgot-password', hidden, backUrl: '/login?interaction=lyi_3vQ8' },
  },
  'email-on-its-way': {
    page: 'email-on-its-way',
    model: { seconds: 3600, backUrl: '/login?interaction=lyi_3vQ8' },
  },
} as const satisfies Readonly<Record<string, Sample>>

/** The same with hostile text wherever text can be. */
export function hostileLinkPages(foreign: Text) {
  const evil = { [hostileText]: hostileText }
  const url = `/login?${new URLSearchParams({ interaction: hostileText })}`
  return {
    'hostile-link-password': {
      page: 'link-password',
      model: {
        action: hostileText,
        hidden: evil,
        purpose: 'invitation',
        username: hostileText,
        typed: { username: hostileText, email: hostileText, givenName: hostileText, familyName: hostileText },
        problem: foreign,
        creation: { options: hostileText, name: hostileText },
      },
    },
    'hostile-link-first-user': {
      page: 'link-password',
      model: {
        action: hostileText,
        hidden: evil,
        purpose: 'first-user',
        creation: { options: hostileText, name: hostileText },
        typed: { username: hostileText, email: hostileText, givenName: hostileText, familyName: hostileText },
      },
    },
    'hostile-link-email': {
      page: 'link-email',
      model: {
        action: hostileText,
        hidden: evil,
        email: hostileText,
        username: hostileText,
      },
    },
    'hostile-link-done': {
      page: 'link-done',
      model: { title: foreign, about: foreign, link: { url, label: foreign } },
    },
    'hostile-forgot-password': {
      page: 'forgot-password',
      model: { action: hostileText, hidden: evil, backUrl: url },
    },
    'hostile-letter-on-its-way': { page: 'email-on-its-way', model: { seconds: 3600, backUrl: url } },
  } as const satisfies Readonly<Record<string, Sample>>
}
