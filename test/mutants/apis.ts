import type { Fault } from './fault.ts'

const tests = ['test/admin/apis.test.ts']
const rules = 'src/domain/api-definitions.ts'

/** Faults of the scopes and resources that operators store. */
export const apiFaults = [
  {
    id: 'stored-scope-with-a-meaning-of-the-server',
    tests,
    file: rules,
    find: 'return reserved.has(name) || scopes.some((one) => one.name === name)',
    replace: 'return scopes.some((one) => one.name === name)',
  },
  {
    id: 'stored-scope-before-the-file',
    tests,
    file: rules,
    find: 'stored.scopes.filter(({ name }) => !isConfiguredScope(name, configured))',
    replace: 'stored.scopes',
  },
  {
    id: 'stored-scope-of-any-syntax',
    tests,
    file: rules,
    find: 'isScopeName(name),',
    replace: 'name.length > 0,',
  },
  {
    id: 'stored-scope-deleted-under-a-resource',
    tests,
    file: rules,
    find: 'stored.resources.find((one) => one.scopes.includes(name))',
    replace: 'stored.resources.find((one) => one.scopes.includes(`${name} `))',
  },
  {
    id: 'stored-resource-of-the-file',
    tests,
    file: rules,
    find: 'return same === issuer || resources.some((one) => withoutEmptyPath(one.identifier) === same)',
    replace: 'return same === issuer',
  },
  {
    id: 'stored-resource-with-a-fragment',
    tests,
    file: rules,
    find: 'identifier.length <= 500 && isResourceIdentifier(identifier),',
    replace: 'identifier.length <= 500 && URL.canParse(identifier),',
  },
  {
    id: 'stored-resource-with-unknown-scopes',
    tests,
    file: rules,
    find: 'resource.scopes.length > 0 && unknown.length === 0,',
    replace: 'resource.scopes.length > 0,',
  },
  {
    id: 'stored-scopes-of-another-node-unread',
    tests,
    file: 'src/http/current-definitions.ts',
    find: 'if (definitions.revision() === 0) done()',
    replace: 'if (definitions.revision() >= 0) done()',
  },
  {
    id: 'stored-scopes-behind-a-document-in-memory',
    tests,
    file: 'src/http/documents-first.ts',
    find: 'const isReady = isFixed && isOpen && !app.isDraining()',
    replace: 'const isReady = isOpen && !app.isDraining()',
  },
  {
    id: 'stored-scopes-described-once',
    tests,
    file: 'src/feature/service.ts',
    find: 'if (revision() !== at) [described, at] = [describe(), revision()]',
    replace: '',
  },
  {
    id: 'stored-words-of-the-consent-page-kept',
    tests,
    file: 'src/pages/scopes.ts',
    find: 'if (current.catalogue !== service.catalogue) current = translated(service.catalogue)',
    replace: '',
  },
] as const satisfies readonly Fault[]
