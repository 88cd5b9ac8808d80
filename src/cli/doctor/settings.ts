import { isLoopbackIssuer } from '../../settings/checks.ts'
import { configOptions } from '../../settings/options.ts'
import { type Finding, ok, problem, setting, warning } from './finding.ts'
import { isDirect, type Setup } from './setup.ts'

const loopbackAddresses = ['127.0.0.1', '::1', 'localhost']

/** Settings that are valid, and unlikely to be meant here. */
export function* examineSettings(setup: Setup): Generator<Finding> {
  const { config, file, isContainer } = setup
  yield ok('settings', `valid for lychgate ${config.mode}${file === undefined ? '' : `, with ${file}`}`)
  if (config.rateLimits === 'off') {
    yield warning('rate limits', 'are off: one client can ask as often as it likes', {
      expected: 'on',
      found: 'off',
      change: setting('rateLimits', 'on'),
    })
  }
  if (config.mode === 'serve' && config.store === 'sqlite::memory:') {
    yield problem('store', 'is in memory: nothing outlives the server', {
      expected: 'a file or PostgreSQL',
      found: config.store,
      change: setting('store', 'sqlite:/var/lib/lychgate/lychgate.db'),
    })
  }
  if (isContainer) yield* examineContainer(setup)
  yield* examinePort(setup)
}

/** A fault of the configuration; where it says what to write, that is the line. */
export function settingFault(fault: string): Finding {
  const [, path = '', url] = /^([\w.]+)[^:]*:.*?(https?:\/\/[^\s,]+)?$/.exec(fault) ?? []
  const option = configOptions().find((one) => one.path === path)
  if (option === undefined) return problem('settings', fault, {})
  return problem('settings', fault, { change: setting(path, url ?? '…') })
}

/** The browser is outside: what is loopback in here is another machine out there. */
function* examineContainer({ config: { host, issuer } }: Setup): Generator<Finding> {
  if (loopbackAddresses.includes(host)) {
    // A proxy beside it in the same container or pod, or a browser where users develop, does reach it.
    yield warning('container', 'the server listens on its own loopback address: nobody outside reaches it', {
      expected: 'an address of the container, unless the proxy is in here too',
      found: host,
      change: setting('host', '0.0.0.0'),
    })
  }
  if (isLoopbackIssuer(issuer)) {
    yield warning(
      'container',
      'the issuer is a loopback address: other containers and machines reach themselves under it',
      {
        expected: 'the address the browser uses',
        found: issuer,
        change: setting('issuer', 'https://auth.example.org'),
      },
    )
  }
}

/** An http issuer is on this computer; on another port than the server's there has to be something in between. */
function* examinePort(setup: Setup): Generator<Finding> {
  const { issuer, port, trustProxy } = setup.config
  const url = new URL(issuer)
  if (url.protocol === 'https:' || isDirect(setup) || trustProxy.length > 0 || port === 0) return
  yield warning('port', 'the issuer names another port than the one the server listens on', {
    expected: `port ${port}, or a proxy that passes ${url.port || 80} on to it`,
    found: issuer,
    change: setting('port', url.port || '80'),
  })
}
