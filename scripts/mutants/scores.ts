import { hash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** What became of the generated mutations of one file. */
export interface Score {
  readonly file: string
  /** Of the text that was mutated. */
  readonly hash: string
  /** How many were killed by tests, and how many do not type-check. */
  readonly tests: number
  readonly types: number
  /** How many were not tried, because their program does the same. */
  readonly explained: number
  readonly survived: readonly string[]
}

/** The scores of files, one line each in a file that is committed. */
export interface ScoreRecord {
  /** Whether all mutations of a file have been tried, and its text has not changed since. Tests may have. */
  isCurrent(file: string): boolean
  /** Writes the score of a file to the record, in place of an earlier one. */
  put(score: Score): void
  all(): readonly Score[]
}

/** Opens the record below `root`. What is there no more has no score. */
export function openScores(root: string): ScoreRecord {
  const path = join(root, 'test/mutants/generated.jsonl')
  let scores = (existsSync(path) ? readFileSync(path, 'utf8') : '')
    .split('\n')
    .filter((line) => line !== '')
    .map((line): Score => JSON.parse(line))
    .filter(({ file }) => existsSync(join(root, file)))
  return {
    isCurrent: (file) => {
      const current = hashOf(readFileSync(join(root, file), 'utf8'))
      return scores.some((score) => score.file === file && score.hash === current)
    },
    put: (score) => {
      const others = scores.filter(({ file }) => file !== score.file)
      scores = [...others, score].toSorted((one, other) => (one.file < other.file ? -1 : 1))
      writeFileSync(path, scores.map((one) => `${JSON.stringify(one)}\n`).join(''))
    },
    all: () => scores,
  }
}

/** The hash of a source text that a score names. */
export function hashOf(text: string): string {
  return hash('sha256', text, 'hex').slice(0, 16)
}

/** Says in one line what became of the mutations of some files. */
export function summaryOf(scores: readonly Score[]): string {
  const sum = (count: (score: Score) => number) => scores.reduce((total, score) => total + count(score), 0)
  const [tests, types] = [sum((score) => score.tests), sum((score) => score.types)]
  const [explained, survived] = [sum((score) => score.explained), sum((score) => score.survived.length)]
  const tried = tests + types + survived
  const percent = ((100 * (tests + types)) / Math.max(1, tried)).toFixed(1)
  return (
    `${tried + explained} generated mutants in ${scores.length} ${scores.length === 1 ? 'file' : 'files'}: ${tests} killed by tests, ` +
    `${types} by the type check, ${explained} explained, ${survived} survived; score ${percent} %`
  )
}
