import t from 'tap'
import { parseDuration } from '../../src/domain/durations.ts'

const durations = {
  '1s': 1,
  '1m': 60,
  '1h': 3600,
  '1d': 86_400,
  '1w': 604_800,
  '0s': 0,
  '90s': 90,
  '1d12h': 129_600,
  '1w2d3h4m5s': 788_645,
  '5s5s': 10,
  '+15m': 900,
  '-1h': -3600,
  '-1h30m': -5400,
  '999999999s': 999_999_999,
}

t.test('a duration is a sum of counts of seconds, minutes, hours, days and weeks', async (t) => {
  for (const [text, seconds] of Object.entries(durations)) t.equal(parseDuration(text), seconds, text)
})

t.test('any other text is no duration', async (t) => {
  for (const text of [
    '',
    '-',
    '5',
    's',
    '5y',
    '5S',
    'x5s',
    '5sx',
    '5s ',
    ' 5s',
    '1.5h',
    '5s-5s',
    '1234567890s',
  ])
    t.equal(parseDuration(text), undefined, JSON.stringify(text))
})
