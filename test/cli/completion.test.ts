/** `lychgate completion`: the scripts, run by the shells that are on this machine. bash is everywhere. */
import { spawnSync } from 'node:child_process'
import t from 'tap'
import { run } from '../helpers/command.ts'

type Completer = (script: string, line: readonly string[]) => { shell: string; input: string; args: string[] }
const completers: Record<string, Completer> = {
  bash: (script, line) => ({
    shell: 'bash',
    args: ['-s', '--', ...line],
    input: `${script}\nCOMP_WORDS=("$@"); COMP_CWORD=$((\${#COMP_WORDS[@]}-1)); _lychgate; printf '%s\\n' "\${COMPREPLY[@]}"`,
  }),
  zsh: (script, line) => ({
    shell: 'zsh',
    args: ['-s', '--', ...line],
    // What _describe would show, without a terminal.
    input: `compdef() { }; _files() { }; _describe() { print -l -- \${\${(P)2}%%:*} }\n${script}\nwords=("$@"); CURRENT=$#; _lychgate`,
  }),
  fish: (script, line) => ({
    shell: 'fish',
    args: ['-c', `${script}\ncomplete -C ${JSON.stringify(line.join(' '))} | string split -f1 \\t`],
    input: '',
  }),
}

/** Shells offer the names of files, too. */
const empty = t.testdir({})

/** What a shell offers after this line, the last word of which is being typed. */
async function offered(shell: string, line: readonly string[]): Promise<readonly string[]> {
  const { stdout: script } = await run(['completion', shell])
  const { args, input } = (completers[shell] as Completer)(script, line)
  const { stdout, stderr } = spawnSync(shell, args, { input, cwd: empty, encoding: 'utf8' })
  if (stderr !== '') throw new Error(`${shell}: ${stderr}`)
  const [typed = ''] = line.slice(-1)
  return stdout
    .split('\n')
    .filter((word) => word !== '' && word.startsWith(typed))
    .sort()
}

const shells = Object.keys(completers).filter((shell) => spawnSync(shell, ['-c', 'true']).status === 0)
for (const shell of shells) {
  t.test(`${shell} completes commands, flags and values`, async (t) => {
    t.strictSame(await offered(shell, ['lychgate', 'do']), ['doctor'])
    t.strictSame(await offered(shell, ['lychgate', 'keys', 'r']), ['reseal', 'retire', 'rotate'])
    t.strictSame(await offered(shell, ['lychgate', 'client', 'add', '--red']), ['--redirect-uri'])
    t.strictSame(await offered(shell, ['lychgate', 'client', 'add', '--name', 'add', '--red']), [
      '--redirect-uri',
    ])
    t.strictSame(await offered(shell, ['lychgate', 'init', '--proxy', 'n']), ['nginx', 'none'])
    t.strictSame(await offered(shell, ['lychgate', 'completion', 'x']), [])
  })
}

t.test('a shell without a script is rejected', async (t) => {
  t.match(await run(['completion', 'tcsh']), { code: 64, stderr: /Allowed choices are bash, zsh, fish/ })
  t.equal(shells.includes('bash'), true)
})
