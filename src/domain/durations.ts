import type { Seconds } from './model.ts'

const units = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
] as const

/** A duration in its largest fitting unit, for people: "90 days", "1 hour". */
export function inWords(seconds: Seconds): string {
  const [unit, size] = units.find(([, length]) => seconds >= length) ?? (['second', 1] as const)
  const count = Math.floor(seconds / size)
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}
