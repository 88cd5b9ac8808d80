import t from 'tap'
import { newFolder } from '../helpers/command.ts'
import { runHere as run } from '../helpers/commands.ts'

const data = newFolder(t)
const client = (...args: string[]) => run(['client', ...args, '--data', data])
const github = {
  issuer: 'https://token.actions.githubusercontent.com',
  subject: 'repo:example/courses:ref:refs/heads/main',
}
const cluster = { issuer: 'https://cluster.example', subject: 'system:serviceaccount:courses:import' }
const named = ({ issuer, subject }: typeof github) => ['--issuer', issuer, '--subject', subject]
const adding = ['add', '--name', 'Import', '--grant-type', 'client_credentials', '--scope', 'courses:read']

async function addTrusting(...trusted: readonly object[]): Promise<string> {
  const flags = ['--auth', 'private_key_jwt', '--trusted-issuers', JSON.stringify(trusted), '--json']
  return JSON.parse((await client(...adding, ...flags)).stdout).client_id
}

t.test('an operator adds a client that trusts an issuer, and then trusts another one', async (t) => {
  const id = await addTrusting(github)
  const { stdout } = await client(
    'trust',
    'add',
    id,
    ...named(cluster),
    '--audience',
    'lychgate',
    '--reusable',
    '--json',
  )
  const both = [github, { ...cluster, audience: 'lychgate', reusable: true }]
  t.strictSame(JSON.parse(stdout), both)
  t.match((await client('show', id, '--json')).stdout, /"trusted_issuers"/)
  const { stdout: listed } = await client('trust', 'list', id)
  t.match(listed, /githubusercontent\.com +repo:example\/courses:ref:refs\/heads\/main +once\n/)
  t.match(listed, /cluster\.example +system:serviceaccount:courses:import +lychgate +reusable\n/)
  t.match(await client('trust', 'add', id, ...named(github)), { code: 1, stderr: /twice/ })
  const other = await client('trust', 'remove', id, ...named(cluster), '--yes')
  t.match(other, { code: 1, stderr: /does not trust/ }, 'the audience is part of it')
  const { stdout: left } = await client(
    'trust',
    'remove',
    id,
    ...named(cluster),
    '--audience',
    'lychgate',
    '--yes',
    '--json',
  )
  t.strictSame(JSON.parse(left), [github])
  t.match(
    await client('trust', 'remove', id, ...named(github), '--yes'),
    { code: 1, stderr: /needs jwks/ },
    'one way is left',
  )
  const events = (await run(['audit', '--data', data])).stdout
  t.match(events, /client-changed.*trusted_issuers.*cluster\.example.*system:serviceaccount:courses:import/)
})

t.test('one subject is one client, unless audiences tell them apart', async (t) => {
  const id = await addTrusting({ ...github, subject: 'one' })
  t.match(await client('trust', 'add', id, ...named(github)), {
    code: 1,
    stderr: /another client .*trusts this.*audience of its own/,
  })
  t.match(await client('trust', 'add', id, ...named(github), '--audience', 'other'), { code: 0 })
  const trusting = ['--trusted-issuers', JSON.stringify([github])]
  const taken = { code: 1, stderr: /another client .*trusts this/ }
  t.match(await client(...adding, '--auth', 'private_key_jwt', ...trusting), taken)
  t.match(await client('set', id, ...trusting), taken)
})

t.test('what cannot be compared exactly is rejected, and so is a client of another method', async (t) => {
  const id = await addTrusting({ ...github, subject: 'two' })
  const pattern = await client('trust', 'add', id, '--issuer', github.issuer, '--subject', 'repo:example/*')
  t.match(pattern, { code: 1, stderr: /compared exactly/ })
  const http = await client('trust', 'add', id, '--issuer', 'http://cluster.example', '--subject', 'a')
  t.match(http, { code: 1, stderr: /https URL/ })
  t.match(await client('trust', 'add', 'client_nobody', ...named(github)), { code: 1, stderr: /no client/ })
  const { stdout } = await client(...adding, '--json')
  const secret = await client('trust', 'add', JSON.parse(stdout).client_id, ...named(cluster))
  t.match(secret, { code: 1, stderr: /not by private_key_jwt/ })
})
