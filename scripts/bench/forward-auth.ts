/**
 * `npm run bench -- forward-auth`: CPU of the server for the question of a proxy about a user who is signed in, and for
 * a UserInfo request with the same scopes, in paired turns of one run.
 */
import { spawnSync } from 'node:child_process'
import { countsOption, readCount, readSeconds, scriptCommand } from '../command.ts'
import { bearer, Connection, get } from './connection.ts'
import { protectedHost, protectedScope, startProtecting, type Target } from './measured-servers.ts'
import { loadCore } from './process.ts'
import { median, ratio } from './result.ts'
import { timesUserInfo } from './targets.ts'
import { work } from './work.ts'
import { type Lane, withToken } from './workloads.ts'

const options = scriptCommand(
  'bench forward-auth',
  'Compares the questions of a proxy with UserInfo requests in paired turns.',
)
  .option('--build <file>', 'the build to measure', 'dist/lychgate')
  .option('--pairs <number>', 'how many turns each kind has', readCount, 40)
  .option('--seconds <number>', 'how long a turn takes', readSeconds, 0.7)
  .option('--warm-up <number>', 'how many turns come before, without being counted', readCount, 8)
  .addOption(countsOption('--connections <numbers>', 'how many at once', [1, 16]))
  .parse()
  .opts<{ build: string; pairs: number; seconds: number; warmUp: number; connections: readonly number[] }>()

const forwarded = `X-Forwarded-Host: ${protectedHost}\r\n`

spawnSync('taskset', ['-a', '-cp', String(loadCore), String(process.pid)])
const target = await startProtecting(options.build)
try {
  process.stdout.write(
    '| connections | UserInfo, µs | forward auth, µs | forward auth ÷ UserInfo (95 %) | at most |\n' +
      '| --- | --- | --- | --- | --- |\n',
  )
  for (const connections of options.connections) {
    const lanesOf = (lane: (target: Target) => Promise<Lane>) =>
      Promise.all(Array.from({ length: connections }, () => lane(target)))
    const kinds = [await lanesOf(askUserInfo), await lanesOf(askForwardAuth)]
    const turn = async (lanes: readonly Lane[]) => {
      const { cpu, operations } = await work(lanes, target.server, options.seconds, { ownCore: true })
      return cpu / operations
    }
    for (let warm = 0; warm < options.warmUp; warm += 1) for (const lanes of kinds) await turn(lanes)
    const cpu = kinds.map((): number[] => [])
    for (let pair = 0; pair < options.pairs; pair += 1)
      for (let place = 0; place < kinds.length; place += 1) {
        const index = (place + pair) % kinds.length
        cpu[index]?.push(await turn(kinds[index] ?? []))
      }
    for (const lanes of kinds) for (const lane of lanes) lane.close()
    const [userInfo = [], asked = []] = cpu
    const cells = [
      connections,
      median(userInfo).toFixed(0),
      median(asked).toFixed(0),
      ratio(asked, userInfo),
      timesUserInfo,
    ]
    process.stdout.write(`| ${cells.join(' | ')} |\n`)
  }
} finally {
  await target.server.stop()
}

function askUserInfo(of: Target): Promise<Lane> {
  return withToken(
    of,
    ({ connection }, token) => {
      const request = get(of.paths.userInfo, bearer(token))
      return async () => {
        const { status, body } = await connection.send(request)
        if (status !== 200 || !body.includes('"sub"')) throw new Error(`UserInfo: ${status} ${body}`)
      }
    },
    protectedScope,
  )
}

/** Signs in to the host, as a browser does whose session at the issuer is there. */
async function askForwardAuth({ server, cookie }: Target): Promise<Lane> {
  const connection = new Connection(server.port)
  const hop = async (path: string, headers: string) => {
    const { head } = await connection.send(get(path, headers))
    const next = /\r\nlocation: ([^\r]+)/i.exec(head)?.[1]
    if (next === undefined) throw new Error(`no redirect: ${head}`)
    const { pathname, search } = new URL(next)
    const cookies = [...head.matchAll(/\r\nset-cookie: ([^;\r]+)/gi)].map(([, pair = '']) => pair)
    return { next: pathname + search, cookies }
  }
  const begun = await hop('/.lychgate/sign-in?to=%2F', forwarded)
  const approved = await hop(begun.next, cookie)
  const browser = `Cookie: ${begun.cookies.join('; ')}\r\n`
  const signedIn = await hop(approved.next, forwarded + browser)
  const asked = `X-Forwarded-Method: GET\r\nX-Forwarded-Uri: /wiki/Start?x=1\r\nAccept: text/html\r\n`
  const request = get('/forward-auth', `${forwarded}${asked}Cookie: ${signedIn.cookies.join('; ')}\r\n`)
  return {
    operate: async () => {
      const { status, head } = await connection.send(request)
      if (status !== 200 || !/\r\nremote-user: bench\r\n/i.test(head))
        throw new Error(`forward auth: ${head}`)
    },
    close: () => connection.close(),
  }
}
