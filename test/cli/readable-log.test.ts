import t from 'tap'
import { readableLog } from '../../src/cli/readable-log.ts'

const time = 1_795_170_614_000

t.test(
  'the readable log has one line per request, and for a rejected one the stored and received values',
  async (t) => {
    t.match(
      written({
        level: 30,
        time,
        method: 'GET',
        path: '/api/courses',
        status: 200,
        ms: 1.5,
        msg: 'responded',
      }),
      /^\d\d:\d\d:\d\d 200 GET \/api\/courses 1\.5 ms\n$/,
    )
    const rejected = written({
      ...{ level: 30, time, method: 'POST', path: '/api/oauth/token', status: 400, ms: 2, msg: 'rejected' },
      ...{
        error: 'invalid_scope',
        why: 'scope goes beyond what the user granted',
        rule: 'rfc6749-6-scope-exceed',
      },
      ...{ stored: ['openid', 'courses:read'], received: 'courses:write' },
    })
    t.match(rejected, 'invalid_scope: scope goes beyond what the user granted  [rfc6749-6-scope-exceed]')
    t.match(rejected, /stored {4}openid courses:read\n.*received {2}courses:write/)
  },
)

t.test('an error has the link of its trace and its stack', async (t) => {
  const failed = written({
    ...{ level: 50, time, method: 'GET', path: '/x', status: 500, ms: 2, msg: 'failed', reqId: 'abc' },
    ...{ error: 'server_error', why: 'the server failed', cause: { stack: 'Error: no\n    at x.ts:1' } },
  })
  t.match(failed, /trace {5}http:\/\/localhost:9400\/_dev\/flows\/requests\/abc\n *Error: no\n *at x\.ts:1/)
  t.match(
    written({ level: 40, time, msg: 'sweeping failed', err: { stack: 'Error: full' } }),
    /sweeping failed\n *Error: full/,
  )
})

t.test('a registration without some of its scopes is one line', async (t) => {
  const line = {
    level: 30,
    time,
    client: 'client_a',
    dropped: ['x', 'a\u001b[2J\nb'],
    msg: 'scopes were left out',
  }
  t.match(
    written(line),
    /^\S+ client_a: unknown scopes were left out \(the option scopes\): x a\ufffd\[2J\ufffdb\n$/,
  )
})

t.test('received text cannot control the terminal', async (t) => {
  const rejected = written({
    ...{ level: 30, time, method: 'POST', path: '/\u009b2J', status: 400, ms: 2, msg: 'rejected' },
    ...{
      error: 'unsupported_grant_type',
      why: 'no',
      received: '\u001b]0;owned\u0007\u202eabc\n12:00:00 200',
    },
  })
  t.match(rejected, 'received  \ufffd]0;owned\ufffd\ufffdabc\ufffd12:00:00 200\n')
  t.notMatch(rejected, /[^\P{C}\n]/u)
  t.equal(rejected.split('\n').length, 5, 'four lines and the end')
})

t.test('the pages of the development server are not logged, unless they are rejected', async (t) => {
  for (const path of ['/_dev/flows/f1', '/_dev/assets/dev.js', '/t/_dev/try', '/assets/style.css']) {
    const line = { level: 30, time, method: 'GET', path, status: 200, ms: 1, msg: 'responded' }
    t.equal(written(line), '', path)
    t.match(written({ ...line, status: 404, error: 'invalid_request', why: 'no' }), path)
  }
  const issuer = { level: 30, time, method: 'GET', path: '/_dev/issuers/x/login', status: 200, ms: 1 }
  t.match(written({ ...issuer, msg: 'responded' }), '/_dev/issuers/x/login')
})

t.test('an error of a misbehaving issuer links to the trace of that issuer', async (t) => {
  const line = {
    level: 30,
    time,
    method: 'POST',
    status: 400,
    ms: 1,
    error: 'invalid_grant',
    why: 'no',
    reqId: 'r',
  }
  t.match(
    written({ ...line, path: '/_dev/issuers/iss-wrong/api/oauth/token' }),
    'trace     http://localhost:9400/_dev/issuers/iss-wrong/_dev/flows/requests/r\n',
  )
  t.notMatch(written({ ...line, path: '/_dev/clock' }), 'trace')
})

t.test('what the banner printed is not logged again', async (t) => {
  t.equal(written({ level: 30, time, msg: 'Server listening at http://127.0.0.1:9400' }), '')
})

t.test('the log of a production server has dates, request ids, and every line with its facts', async (t) => {
  const serve = (line: object) => written({ time, pid: 7, hostname: 'auth', ...line }, null)
  const at = '2026-11-20T10:30:14Z'
  t.equal(
    serve({ level: 30, msg: 'ready', issuer: 'https://a.example' }),
    `${at} ready issuer=https://a.example\n`,
  )
  const failed = { level: 40, reqId: 'r', rule: 'x', address: '203.0.113.7', msg: 'sign-in failed' }
  t.equal(serve(failed), `${at} sign-in failed reqId=r rule=x address=203.0.113.7\n`)
  const asset = {
    level: 30,
    reqId: 'r',
    method: 'GET',
    path: '/assets/a.css',
    status: 404,
    ms: 1,
    msg: 'rejected',
  }
  t.equal(
    serve({ ...asset, error: 'invalid_request', why: 'a\n12:00 b' }),
    `${at} 404 GET /assets/a.css 1 ms\n         invalid_request: a\ufffd12:00 b\n         request   r\n`,
  )
  const forged = { level: 40, from: ['\u001b[2J\n'], address: '\u009b\n', msg: `a\n${at} b` }
  t.equal(
    serve(forged),
    `${at} a\n         ${at} b from=["\\u001b[2J\\n"] address=\ufffd\ufffd\n`,
    'nothing looks like a line of its own',
  )
})

function written(line: object, issuer: string | null = 'http://localhost:9400'): string {
  let text = ''
  readableLog({ write: (more) => (text += more) }, issuer ?? undefined).write(JSON.stringify(line))
  return text
}
