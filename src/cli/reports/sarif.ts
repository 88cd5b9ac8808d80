import { type ClauseReport, observationOf, type ReportedClause } from './report.ts'

const levels = {
  fail: ['error', 'fail'],
  warning: ['warning', 'fail'],
  pass: ['none', 'pass'],
  'not applicable': ['none', 'notApplicable'],
  'not testable': ['none', 'open'],
  'not run': ['none', 'open'],
} as const

/** Formats a report as SARIF 2.1.0: each check is a rule, and has one result. Its place is the issuer or the client. */
export function sarif({ tool, subject, profile, results }: ClauseReport) {
  return {
    $schema: 'https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: { driver: { name: tool, rules: results.map(ruleOf) } },
        automationDetails: { id: `${tool}/${profile}/` },
        results: results.map((result, at) => resultOf(subject, result, at)),
      },
    ],
  }
}

function ruleOf({ check, level, place, url, wants }: ReportedClause) {
  return {
    id: check,
    shortDescription: { text: wants },
    fullDescription: { text: `${level}, ${place}: ${wants}` },
    ...(url !== '' && { helpUri: url }),
    defaultConfiguration: { level: level.startsWith('MUST') ? 'error' : 'warning' },
  }
}

function resultOf(subject: string, result: ReportedClause, ruleIndex: number) {
  const { check, verdict, because, wants } = result
  const [level, kind] = levels[verdict]
  const text = [because ?? wants, verdict === 'pass' ? '' : observationOf(result)].filter(Boolean).join('\n')
  return {
    ruleId: check,
    ruleIndex,
    level,
    kind,
    message: { text },
    locations: [{ physicalLocation: { artifactLocation: { uri: encodeURI(subject) } } }],
    partialFingerprints: { check: `${check} ${subject}` },
  }
}
