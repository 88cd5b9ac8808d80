/** `prove --record` in a real Chromium, driven as a user would: what it wrote is enough to sign in and decide. */
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { type Page, chromium as playwright } from 'playwright-core'
import t from 'tap'
import { type Action, recordingFrom } from '../../src/cli/prove-record.ts'
import { start } from '../../src/dev/start.ts'
import { recordingOf } from '../../src/prove/presets.ts'
import { chromiumOf } from '../helpers/chromium.ts'
import { ended, newFolder, printed, run, start as startCommand } from '../helpers/command.ts'

const server = await start()
t.teardown(server.stop)
const folder = newFolder(t)

/** A program that starts Chromium without a window, and says where the test can reach it. */
async function browserProgram(): Promise<string> {
  const { executablePath, env, args } = await chromiumOf()
  const file = join(folder, 'browser')
  const variables = Object.entries(env).map(([name, value]) => `export ${name}='${value}'`)
  const line = `exec '${executablePath}' ${args.join(' ')} --remote-debugging-port=0 "$@" 2>'${folder}/log'`
  writeFileSync(file, ['#!/bin/sh', ...variables, line, ''].join('\n'))
  chmodSync(file, 0o755)
  return file
}

async function pageOf(): Promise<Page> {
  const form = /ws:\/\/\S+/
  while (!existsSync(`${folder}/log`) || !form.test(readFileSync(`${folder}/log`, 'utf8')))
    await setTimeout(50)
  const [url = ''] = form.exec(readFileSync(`${folder}/log`, 'utf8')) ?? []
  const browser = await playwright.connectOverCDP(url)
  t.teardown(() => browser.close())
  for (;;) {
    const pages = browser.contexts().flatMap((context) => context.pages())
    const page = pages.find((candidate) => candidate.url().startsWith(server.issuer))
    if (page !== undefined) return page
    await setTimeout(50)
  }
}

t.test('the forms of a server are learned from a user, and no password is written', async (t) => {
  const file = join(folder, 'forms.json')
  const program = await browserProgram()
  const recording = startCommand(['prove', server.issuer, '--record', file, '--browser', program])
  const end = ended(recording)
  await printed(recording, /sign in and approve/)
  const page = await pageOf()
  await page.fill('input[name=username]', 'alice')
  await page.fill('input[name=password]', 'alice-in-dev')
  await page.press('input[name=password]', 'Enter')
  const denying = printed(recording, /Now deny/)
  await page.click('button[value=approve]', { noWaitAfter: true })
  await denying
  await page.click('button[value=deny]', { noWaitAfter: true })
  const { code, stdout, stderr } = await end
  t.equal(code, 0, stderr)
  t.match(stdout, `${file} is written`)
  const text = readFileSync(file, 'utf8')
  t.notMatch(text, /alice/)
  const forms = JSON.parse(text)
  t.match(forms, {
    signIn: { username: 'username', password: 'password' },
    consent: {
      has: 'decision',
      approve: { name: 'decision', value: 'approve' },
      deny: { name: 'decision', value: 'deny' },
    },
  })
  t.strictSame(recordingOf(forms), forms)

  const password = join(folder, 'password')
  writeFileSync(password, 'alice-in-dev\n')
  const as = ['--username', 'alice', '--password-file', password, '--forms', file]
  const only = ['--only', '^rfc6749-4.1.2.1-access-denied$|^rfc6749-4.1.2-state-exact']
  const proved = await run(['prove', server.issuer, ...only, ...as])
  t.match(proved.stdout, /[1-9]\d* pass, 0 fail, 0 warning, 0 not applicable, 0 not testable/)
  t.equal(proved.code, 0, proved.stderr)
})

t.test('a browser that cannot be started, or that ends, is named; no client remains', async (t) => {
  const file = join(folder, 'none.json')
  for (const [program, says] of [
    [[], '--record takes --browser'],
    [['--browser', join(folder, 'absent')], '--browser: spawn'],
    [['--browser', '/bin/true'], 'the browser was closed'],
  ] as const) {
    const { code, stdout, stderr } = await run(['prove', server.issuer, '--record', file, ...program])
    t.not(code, 0)
    t.match(stderr, says)
    t.notMatch(stdout, 'remain')
    t.notOk(existsSync(file))
  }
})

t.test('a link that denies is recognised by its end, and what cannot be recorded is said', async (t) => {
  const hidden = { name: 'prompt', type: 'hidden' }
  const signIn: Action = {
    controls: [hidden, { name: 'login', type: 'text' }, { name: 'secret', type: 'password' }],
  }
  const consent: Action = { controls: [hidden] }
  t.strictSame(recordingFrom([signIn, consent], [{ link: 'http://id.example/interaction/x/abort' }]), {
    name: 'recorded',
    signIn: { username: 'login', password: 'secret' },
    consent: { has: 'prompt', deny: { link: '/abort$' } },
  })
  t.throws(() => recordingFrom([consent], []), { message: /user name and a password/ })
  t.throws(() => recordingFrom([signIn], []), { message: /no form was sent to approve/ })
})
