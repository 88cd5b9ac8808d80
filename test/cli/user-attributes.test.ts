import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { runHere as run } from '../helpers/commands.ts'

const settings = `
accounts:
  attributes:
    - { name: department, type: choice, values: [physics, biology] }
    - { name: level, type: number }
    - { name: tutor, type: boolean }
    - { name: room }
`

function described(
  t: Test,
  yaml = settings,
): (line: readonly string[], input?: string) => ReturnType<typeof run> {
  const folder = t.testdir({
    'lychgate.yaml': yaml,
    'later.yaml': 'accounts: { attributes: [{ name: room }] }',
  })
  return (line, input = 'long enough') =>
    run(['user', ...line, '--data', folder, '--config', join(folder, 'lychgate.yaml')], { input })
}

const flags = (...values: readonly string[]) => values.flatMap((value) => ['--attribute', value])

t.test('an operator adds, invites and changes users with attributes', async (t) => {
  const user = described(t)
  const added = await user([
    'add',
    'carol',
    ...flags('department=physics', 'level=-2.5', 'tutor=false'),
    '--json',
  ])
  t.equal(added.code, 0, added.stderr)
  t.strictSame(JSON.parse(added.stdout).attributes, { department: 'physics', level: -2.5, tutor: false })
  const invited = await user(['invite', 'dave@example.org', '--print', ...flags('room= B = 12 ')])
  t.equal(invited.code, 0, invited.stderr)
  const set = await user(['set', 'carol', ...flags('level=3', 'department=', 'room=A=1'), '--name', 'Carol'])
  t.match(set, {
    code: 0,
    stdout: 'changed  carol\nwhat     name attributes.level attributes.department attributes.room\n',
  })
  const shown = await user(['show', 'carol'])
  t.match(shown.stdout, /^attribute level +3\nattribute tutor +false\nattribute room +A=1\n/m)
  t.notMatch(shown.stdout, 'department')
  t.match(JSON.parse((await user(['show', 'dave@example.org', '--json'])).stdout), {
    attributes: { room: 'B = 12' },
  })
})

t.test('what no attribute has is one line, and changes nothing', async (t) => {
  const user = described(t)
  await user(['add', 'carol', ...flags('room=A')])
  const cases: readonly (readonly [string, string])[] = [
    ['shoes=41', 'attributes: shoes is not declared in accounts.attributes'],
    ['shoes=', 'attributes: shoes is not declared in accounts.attributes'],
    ['__proto__=x', 'attributes: a name is not declared in accounts.attributes'],
    ['constructor=x', 'attributes: constructor is not declared in accounts.attributes'],
    ['Ä"\\=x', 'attributes: a name is not declared in accounts.attributes'],
    ['=x', 'attributes: a name is not declared in accounts.attributes'],
    ['level=high', 'attributes: level must be a number'],
    ['level=0x10', 'attributes: level must be a number'],
    ['level=1e3', 'attributes: level must be a number'],
    ['level=9999999999999999', 'attributes: level must be a number'],
    ['level=NaN', 'attributes: level must be a number'],
    ['tutor=yes', 'attributes: tutor must be true or false'],
    [
      'department=Physics',
      'attributes: department must be one of the values that accounts.attributes lists for it',
    ],
    [`room=${'x'.repeat(201)}`, 'attributes: room is too long'],
    ['room=a\u0007b', 'attributes: room contains invisible characters'],
    ['room=a\u202eb', 'attributes: room contains invisible characters'],
  ]
  for (const [flag, line] of cases) {
    const result = await user(['set', 'carol', ...flags('level=1', flag)])
    t.match(result, { code: 1, stdout: '', stderr: `lychgate: ${line}\n` }, flag)
  }
  t.match(await user(['set', 'carol', ...flags('level')]), {
    code: 64,
    stderr: /--attribute: must be NAME=VALUE/,
  })
  t.match(await user(['add', 'erin', ...flags('level=high')]), { code: 1, stderr: /level must be a number/ })
  t.match(await user(['show', 'erin']), { code: 1 })
  t.strictSame(JSON.parse((await user(['show', 'carol', '--json'])).stdout).attributes, { room: 'A' })
})

t.test('a value that is no longer declared stays, and can be removed', async (t) => {
  const user = described(t)
  await user(['add', 'carol', ...flags('room=A', 'level=3', 'tutor=true')])
  const later = (line: readonly string[]) => {
    const folder = t.testdirName
    return run(['user', ...line, '--data', folder, '--config', join(folder, 'later.yaml')])
  }
  t.match(await later(['set', 'carol', ...flags('room=B')]), { code: 0 })
  t.match(await later(['set', 'carol', ...flags('level=4')]), { code: 1, stderr: /level is not declared/ })
  t.strictSame(JSON.parse((await later(['show', 'carol', '--json'])).stdout).attributes, {
    room: 'B',
    level: 3,
    tutor: true,
  })
  t.match(await later(['set', 'carol', ...flags('level=')]), { code: 0 })
  t.strictSame(JSON.parse((await later(['show', 'carol', '--json'])).stdout).attributes, {
    room: 'B',
    tutor: true,
  })
})

t.test('the audit log names attributes, without their values', async (t) => {
  const user = described(t)
  await user(['add', 'carol'])
  await user(['set', 'carol', ...flags('room=secret-room')])
  const folder = t.testdirName
  const { stdout } = await run(['audit', '--data', folder, '--json'])
  t.match(stdout, 'attributes.room')
  t.notMatch(stdout, 'secret-room')
})

t.test('files carry attributes, and are applied once', async (t) => {
  const folder = t.testdir({ 'lychgate.yaml': settings, files: { 'a.yaml': '' } })
  const at = (line: readonly string[]) =>
    run([...line, '--data', folder, '--config', join(folder, 'lychgate.yaml')])
  const apply = (attributes: string) => {
    writeFileSync(join(folder, 'files/a.yaml'), `users: [{ username: carol, attributes: { ${attributes} } }]`)
    return at(['apply', '-f', join(folder, 'files')])
  }
  t.match(await apply('level: 3, tutor: false, room: B 12'), { code: 0 })
  const again = await at(['apply', '-f', join(folder, 'files'), '--dry-run'])
  t.equal(again.code, 0, 'nothing is left to change')
  t.match(await apply('level: 4, room: ""'), { code: 0, stdout: /attributes\.level/ })
  for (const [wrong, reason] of [
    ['level: high', /attributes: level must be a number/],
    ['shoes: 41', /attributes: shoes is not declared/],
    ['__proto__: x', /is not declared|__proto__/],
    ['level: [1]', /attributes/],
  ] as const)
    t.match(await apply(wrong), { stderr: reason })
  const shown = await at(['user', 'show', 'carol', '--json'])
  t.strictSame(JSON.parse(shown.stdout).attributes, { level: 4, tutor: false })
})
