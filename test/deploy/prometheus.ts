/** The rules of Prometheus, read and tried by promtool with the cases in prometheus-rules.yaml of this folder. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { getPromtool } from '../../scripts/cluster/packages.ts'
import { newFolder } from '../helpers/command.ts'

const [rules, cases] = ['deploy/prometheus-rules.yaml', 'test/deploy/prometheus-rules.yaml']
const promtool = getPromtool(newFolder(t))

t.test('every rule is valid, and fires when it should', async (t) => {
  for (const args of [
    ['check', 'rules', rules],
    ['test', 'rules', cases],
  ]) {
    const { status, stdout, stderr } = spawnSync(promtool, args, { encoding: 'utf8' })
    t.equal(status, 0, `${stdout}${stderr}`)
  }
})

t.test('every rule has a case in which it fires', async (t) => {
  const { groups } = parse(readFileSync(rules, 'utf8'))
  const { tests } = parse(readFileSync(cases, 'utf8'))
  const fired = tests.flatMap((one: { alert_rule_test: { alertname: string; exp_alerts: object[] }[] }) =>
    one.alert_rule_test.flatMap(({ alertname, exp_alerts }) => (exp_alerts.length > 0 ? [alertname] : [])),
  )
  t.strictSame(fired.toSorted(), groups[0].rules.map(({ alert }: { alert: string }) => alert).toSorted())
})
