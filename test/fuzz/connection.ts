import { connect, type Socket } from 'node:net'

/** A response as it came. */
export interface HttpResponse {
  /** 0: the connection ended without one. */
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly cookies: readonly string[]
  readonly body: string
}

/** How long a response may take before the server counts as hung. */
const hangMilliseconds = 20_000

/** One kept-alive connection, as a browser has: requests go one after the other. */
export interface Connection {
  /** @param isAlone The bytes may be no HTTP: they get a separate connection, on which nothing else is sent. */
  send(bytes: Buffer, method: string, isAlone: boolean): Promise<readonly HttpResponse[]>
  close(): void
}

export function openConnection(port: number): Connection {
  let kept: Socket | undefined
  return {
    async send(bytes, method, isAlone) {
      const socket = (isAlone ? undefined : kept) ?? connect({ port, host: 'localhost', allowHalfOpen: true })
      const responses = await exchange(socket, bytes, method, isAlone)
      const [{ status = 0, headers = {} } = {}] = responses
      const isOver = isAlone || status === 0 || headers['connection'] === 'close'
      if (isOver) socket.destroy()
      if (!isAlone) kept = isOver ? undefined : socket
      return responses
    },
    close: () => kept?.destroy(),
  }
}

/** The response to one request; for a separate connection everything until the server stops sending. */
function exchange(
  socket: Socket,
  bytes: Buffer,
  method: string,
  isAlone: boolean,
): Promise<readonly HttpResponse[]> {
  return new Promise((resolve, reject) => {
    let received = ''
    const finish = (responses: readonly HttpResponse[] | undefined) => {
      clearTimeout(timer)
      socket.removeAllListeners()
      socket.on('error', () => {})
      if (responses === undefined) reject(new Error(`no response within ${hangMilliseconds / 1000} seconds`))
      else resolve(responses)
    }
    const timer = setTimeout(() => finish(undefined), hangMilliseconds)
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1')
      const responses = isAlone ? [] : readResponses(received, method)
      if (responses.length > 0) finish(responses)
    })
    const ended = () => {
      const responses = readResponses(received, method)
      finish(responses.length > 0 ? responses : [{ status: 0, headers: {}, cookies: [], body: received }])
    }
    socket.on('end', ended)
    socket.on('close', ended)
    // The server may reject before it has read everything: its response counts, and the connection ends.
    socket.on('error', () => {})
    socket.write(bytes)
    if (isAlone) socket.end()
  })
}

/** The complete final responses. None can be separated after a response to HEAD. */
function readResponses(text: string, method: string): readonly HttpResponse[] {
  const responses: HttpResponse[] = []
  for (let left = text; left.length > 0; ) {
    const split = left.indexOf('\r\n\r\n')
    if (split < 0) break
    const { status, headers, cookies } = readHead(left.slice(0, split))
    left = left.slice(split + 4)
    if (status >= 100 && status < 200) continue
    const content = readBody(left, status, method, headers)
    if (content === undefined) break
    responses.push({ status, headers, cookies, body: Buffer.from(content.body, 'latin1').toString() })
    if (method === 'HEAD') break
    left = left.slice(content.length)
  }
  return responses
}

function readHead(head: string): Omit<HttpResponse, 'body'> {
  const [statusLine = '', ...lines] = head.split('\r\n')
  const headers: Record<string, string> = {}
  const cookies: string[] = []
  for (const line of lines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).toLowerCase()
    const value = line.slice(colon + 1).trim()
    if (name === 'set-cookie') cookies.push(value)
    // A repeated header is kept twice, so that a check sees it.
    else headers[name] = name in headers ? `${headers[name]}\n${value}` : value
  }
  return { status: Number(/^HTTP\/1\.[01] (\d{3})/.exec(statusLine)?.[1] ?? 999), headers, cookies }
}

interface Content {
  readonly body: string
  /** With its framing. */
  readonly length: number
}

function readBody(
  rest: string,
  status: number,
  method: string,
  headers: Readonly<Record<string, string>>,
): Content | undefined {
  if (method === 'HEAD' || status === 204 || status === 304) return { body: '', length: 0 }
  if (headers['transfer-encoding'] === 'chunked') return unchunk(rest)
  const length = Number(headers['content-length'] ?? 0)
  return rest.length < length ? undefined : { body: rest.slice(0, length), length }
}

function unchunk(text: string): Content | undefined {
  let [at, body] = [0, '']
  for (;;) {
    const line = text.indexOf('\r\n', at)
    if (line < 0) return undefined
    const size = Number.parseInt(text.slice(at, line), 16)
    const end = line + 2 + size + 2
    if (text.length < end) return undefined
    if (size === 0) return { body, length: end }
    body += text.slice(line + 2, line + 2 + size)
    at = end
  }
}
