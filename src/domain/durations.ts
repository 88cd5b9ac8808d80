import type { Seconds } from './model.ts'

const secondsOf: Readonly<Record<string, Seconds>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 }

/** Parses a duration: `90s`, `15m`, `12h`, `31d`, `4w`, `1d12h`, `-1h`; undefined for anything else. */
export function parseDuration(text: string): Seconds | undefined {
  if (!/^[-+]?(\d{1,9}[smhdw])+$/.test(text)) return undefined
  const parts = [...text.matchAll(/(\d+)([smhdw])/g)]
  const seconds = parts.reduce((sum, [, count, unit = '']) => sum + Number(count) * (secondsOf[unit] ?? 0), 0)
  return text.startsWith('-') ? -seconds : seconds
}
