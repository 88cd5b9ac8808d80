import type { Fault } from './fault.ts'

const parameters = 'src/domain/parameters.ts'

/** Faults of parsing requests. */
export const parsingFaults = [
  {
    id: 'empty-value-counts-as-sent',
    rule: 'rfc6749-3.1-empty-as-omitted',
    file: parameters,
    find: "    if (value === '') continue\n",
    replace: '',
  },
  {
    id: 'broken-encoding-replaced',
    rule: 'rfc6749-4.1.3-form-utf8',
    file: parameters,
    find: '  } catch {\n    throw malformed()',
    replace: '  } catch {\n    return text',
  },
  {
    id: 'raw-space-refused',
    rule: 'rfc6749-B-form-encoding',
    file: parameters,
    find: 'if (/[^\\x20-\\x7e]/.test(text))',
    replace: 'if (/[^\\x21-\\x7e]/.test(text))',
  },
  {
    id: 'raw-space-in-a-name',
    rule: 'rfc6749-B-form-encoding',
    file: parameters,
    find: "    if (encodedName.includes(' ')) throw malformed()\n",
    replace: '',
  },
  {
    id: 'raw-control-characters-read',
    rule: 'rfc6749-B-form-encoding',
    file: parameters,
    find: 'if (/[^\\x20-\\x7e]/.test(text)) throw malformed()',
    replace: "if (/[^\\x20-\\x7e]/.test(text.replaceAll(/[\\t\\r\\n]/g, ''))) throw malformed()",
  },
  {
    id: 'parameters-without-number',
    rule: 'rfc6749-5.2-error-charset',
    file: parameters,
    find: 'if (pairs.length > limits.parameters)',
    replace: 'if (pairs.length > limits.parameters * 10)',
  },
  {
    id: 'scope-without-its-case',
    rule: 'rfc6749-3.3-scope-case-sensitive',
    file: 'src/domain/scope.ts',
    find: "text.split(' ')",
    replace: "text.toLowerCase().split(' ')",
  },
  {
    id: 'json-not-limited-in-depth',
    rule: 'rfc7591-3-post-json',
    file: 'src/http/json-bodies.ts',
    find: 'isNestedDeeper(limits.jsonDepth, text)',
    replace: 'isNestedDeeper(limits.jsonDepth * 1000, text)',
  },
] as const satisfies readonly Fault[]
