import { connect, type Socket } from 'node:net'

/** The part of a response that a benchmark reads. */
export interface HttpResponse {
  readonly status: number
  readonly head: string
  readonly body: string
}

/**
 * One kept-alive HTTP/1.1 connection that sends one request at a time. Written by hand, as the load must cost less
 * than what it measures: a general client takes as long for a request as the server does.
 */
export class Connection {
  readonly #socket: Socket
  #received = ''
  #settle: { resolve(response: HttpResponse): void; reject(error: Error): void } | undefined

  constructor(port: number) {
    this.#socket = connect({ host: '127.0.0.1', port, noDelay: true })
    this.#socket.setEncoding('latin1')
    this.#socket.on('data', (text: string) => this.#take(text))
    this.#socket.on('error', (error) => this.#fail(error))
    this.#socket.on('close', () => this.#fail(new Error('the server closed the connection')))
  }

  /** @param head Request line and headers except `Host` and `Content-Length`, each ended by CRLF. */
  send(head: string, body = ''): Promise<HttpResponse> {
    const length = body === '' ? '' : `Content-Length: ${Buffer.byteLength(body)}\r\n`
    return new Promise((resolve, reject) => {
      this.#settle = { resolve, reject }
      this.#socket.write(`${head}Host: localhost\r\n${length}\r\n${body}`)
    })
  }

  close(): void {
    this.#settle = undefined
    this.#socket.destroy()
  }

  #take(text: string): void {
    this.#received += text
    const end = this.#received.indexOf('\r\n\r\n')
    if (end < 0) return
    const head = this.#received.slice(0, end)
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0)
    if (/\r\ntransfer-encoding: chunked/i.test(head)) {
      this.#fail(new Error(`a chunked answer: ${head}`))
      return
    }
    if (this.#received.length < end + 4 + length) return
    const body = this.#received.slice(end + 4, end + 4 + length)
    this.#received = this.#received.slice(end + 4 + length)
    const settle = this.#settle
    this.#settle = undefined
    settle?.resolve({ status: Number(head.slice(9, 12)), head, body })
  }

  #fail(error: Error): void {
    const settle = this.#settle
    this.#settle = undefined
    settle?.reject(error)
  }
}

export function get(path: string, headers = ''): string {
  return `GET ${path} HTTP/1.1\r\n${headers}`
}

export function postForm(path: string, headers = ''): string {
  return `POST ${path} HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n${headers}`
}

export function postJson(path: string): string {
  return `POST ${path} HTTP/1.1\r\nContent-Type: application/json\r\n`
}

export function bearer(token: string): string {
  return `Authorization: Bearer ${token}\r\n`
}

export function basic(id: string, secret: string): string {
  return `Authorization: Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}\r\n`
}

export function form(fields: Readonly<Record<string, string>>): string {
  return new URLSearchParams(fields).toString()
}
