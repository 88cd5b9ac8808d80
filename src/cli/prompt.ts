import { Writable } from 'node:stream'
import { passwordFault } from '../users/passwords.ts'
import { CommandFailed } from './failure.ts'

/**
 * A new password, exactly as typed: asked twice without echo on a terminal, else the first line of standard input.
 * Never an argument: those show in process lists and shell histories.
 */
export async function readNewPassword(): Promise<string> {
  const password = process.stdin.isTTY ? await askTwice() : await firstLine()
  const fault = passwordFault(password)
  if (fault === undefined) return password
  throw new CommandFailed(
    fault === 'length'
      ? 'the password must have 8 to 256 characters'
      : 'the password is one of the 3,000 commonest; choose another',
  )
}

/**
 * Asks before something is lost.
 * @throws {CommandFailed} without a terminal: a script says `--yes`, so that none removes anything by mistake.
 */
export async function confirm(question: string): Promise<boolean> {
  if (!process.stdin.isTTY) throw new CommandFailed('nobody is here to ask; say --yes')
  const answer = await ask(`${question} [y/N] `, process.stderr)
  return /^y(es)?$/i.test(answer.trim())
}

async function askTwice(): Promise<string> {
  const password = await askSecretly('Password: ')
  if (password !== (await askSecretly('The same again: ')))
    throw new CommandFailed('the two passwords differ')
  return password
}

async function firstLine(): Promise<string> {
  const { text } = await import('node:stream/consumers')
  const [line = ''] = (await text(process.stdin)).split(/\r?\n/, 1)
  return line
}

async function askSecretly(question: string): Promise<string> {
  // readline edits the line as usual and writes its echo to nowhere.
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  process.stderr.write(question)
  try {
    return await ask('', nowhere)
  } finally {
    process.stderr.write('\n')
  }
}

async function ask(question: string, output: NodeJS.WritableStream): Promise<string> {
  // Every command imports this file, and few ask: a server that starts does not wait for Node's line editor.
  const { createInterface } = await import('node:readline')
  const prompt = createInterface({ input: process.stdin, output, terminal: true, historySize: 0 })
  return new Promise((resolve, reject) => {
    const giveUp = () => reject(new CommandFailed('nothing was changed'))
    prompt.once('SIGINT', () => prompt.close())
    prompt.once('close', giveUp)
    prompt.question(question, (answer) => {
      prompt.off('close', giveUp)
      prompt.close()
      resolve(answer)
    })
  })
}
