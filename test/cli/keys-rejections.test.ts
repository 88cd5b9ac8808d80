import t from 'tap'
import { newFolder, run } from '../helpers/command.ts'
import { folderWithKeys, keysIn, keysSecret, runKeys } from '../helpers/keys.ts'

t.test('a store without keys lists none, and has none to rotate', async (t) => {
  const data = newFolder(t)
  t.strictSame(await runKeys(data, 'list'), { code: 0, stdout: '', stderr: '' })
  const rotated = await runKeys(data, 'rotate')
  t.match(rotated, { code: 1, stdout: '', stderr: /^lychgate: this store has no keys yet;[^\n]*\n$/ })
  t.strictSame(await keysIn(data), [])
})

t.test('no key is retired without confirmation, if unknown, or in a script without --yes', async (t) => {
  const data = await folderWithKeys(t)
  const before = await keysIn(data)
  t.match(await runKeys(data, 'retire', '1'), {
    code: 1,
    stderr: 'lychgate: cannot ask for confirmation without a terminal; use --yes\n',
  })
  t.match(await runKeys(data, 'retire', '9', '--yes'), { code: 1, stderr: 'lychgate: no key has this kid\n' })
  t.strictSame(await keysIn(data), before)
})

t.test('a wrong or missing secret is one line, ends with 78 and changes nothing', async (t) => {
  const data = await folderWithKeys(t)
  const before = await keysIn(data)
  const wrong = { LYCHGATE_SECRET: `not ${keysSecret}` }
  const commands = [['list'], ['rotate', '--now'], ['retire', '1', '--yes']]
  const wrongly = await Promise.all(
    commands.map((args) => run(['keys', ...args, '--data', data], { environment: wrong })),
  )
  for (const [index, args] of commands.entries()) {
    t.match(wrongly[index], { code: 78, stdout: '' }, args.join(' '))
    t.match(wrongly[index]?.stderr, /^lychgate: secret: the secret does not open the stored keys; [^\n]*\n$/)
  }
  const [rotated, listed] = await Promise.all(
    ['rotate', 'list'].map((command) => run(['keys', command, '--data', data])),
  )
  t.match(rotated, {
    code: 78,
    stdout: '',
    stderr: /^lychgate: secret: [^\n]* set LYCHGATE_SECRET [^\n]*\n$/,
  })
  t.strictSame([listed?.code, listed?.stderr], [0, ''], 'without a secret keys can be listed')
  t.strictSame(await keysIn(data), before)
})

t.test('each command explains itself, and wrong usage ends with 64', async (t) => {
  const [help, algorithm, retire] = await Promise.all(
    [['rotate', '--help'], ['rotate', '--algorithm', 'HS512'], ['retire']].map((args) =>
      run(['keys', ...args]),
    ),
  )
  t.match(help, { code: 0, stdout: /--algorithm <names\.\.\.>[\s\S]*"handle"[\s\S]*--now[\s\S]*Examples:/ })
  t.match(algorithm, { code: 64, stdout: '' })
  t.match(retire, { code: 64, stderr: /^lychgate: missing required argument 'kid'/ })
})
