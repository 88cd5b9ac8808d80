import { Socket } from 'node:net'

interface Test {
  teardown(end: () => unknown): unknown
}

/** The connections of this process: `host:port`, or the path of a socket. */
export interface Connections {
  readonly all: readonly string[]
  /** Those to ports other than these. */
  except(...ports: readonly (string | number)[]): readonly string[]
}

/** Records every later connection of this process; all use this method, even those of `fetch`. */
export function watchConnections(t: Test): Connections {
  const all: string[] = []
  const { connect } = Socket.prototype
  Socket.prototype.connect = function (this: Socket, ...args: unknown[]) {
    all.push(targetOf(args))
    return Reflect.apply(connect, this, args)
  } as typeof connect
  t.teardown(() => {
    Socket.prototype.connect = connect
  })
  const except = (...ports: readonly (string | number)[]) =>
    all.filter((each) => !ports.some((port) => each.endsWith(`:${port}`)))
  return { all, except }
}

/** net.connect passes its normalized arguments as one array. */
function targetOf([first, second]: readonly unknown[]): string {
  const [target] = Array.isArray(first) ? first : [first]
  if (typeof target !== 'object' || target === null) return `${second}:${target}`
  const { host, port, path } = target as {
    readonly host?: string
    readonly port?: number
    readonly path?: string
  } // of net
  return port === undefined ? String(path) : `${host ?? 'localhost'}:${port}`
}
