import { tracingChannel } from 'node:diagnostics_channel'
import { EventEmitter, once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { SMTPServer } from 'smtp-server'
import { executable } from './command.ts'
import { freePort } from './free-port.ts'

/** One email as the mail server received it. */
export interface Received {
  readonly from: string
  readonly to: readonly string[]
  /** The whole message: headers, then both bodies. */
  readonly source: string
  readonly subject: string
  readonly text: string
  readonly html: string
  /** The only link in it. */
  readonly url: string
}

/** A mail server that keeps the emails it receives. */
export interface Mailbox {
  readonly url: string
  readonly emails: Received[]
  /**
   * Waits until the server under test has sent its emails, and returns the one with this number.
   * @throws {Error} at once when fewer than this many were sent.
   */
  arrived(count: number): Promise<Received>
}

const events = new EventEmitter()
let running = 0
const afterResponse = tracingChannel('lychgate:after-response')
afterResponse.start.subscribe(() => {
  running += 1
})
afterResponse.asyncEnd.subscribe(() => {
  running -= 1
  events.emit('end')
})

/** Waits until no work of a server in this process runs after its response: emails are sent there. */
export async function allSent(): Promise<void> {
  // The client may read the last bytes of a response one turn before the server learns that they are sent.
  for (let turn = 0; turn < 3; turn += 1) await nextTurn()
  while (running > 0) await once(events, 'end')
}

/** Starts a real mail server on a free port; with `reject` it rejects every email. */
export async function startMailbox(
  t: { teardown(end: () => unknown): unknown },
  { reject = false }: { readonly reject?: boolean } = {},
): Promise<Mailbox> {
  const emails: Received[] = []
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onRcptTo: (_address, _session, done) => done(reject ? new Error('unknown recipient') : undefined),
    onData: (stream, session, done) => {
      const chunks: Buffer[] = []
      stream.on('data', (chunk) => void chunks.push(chunk))
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope
        const from = mailFrom === false ? '' : mailFrom.address
        emails.push(
          read(
            from,
            rcptTo.map(({ address }) => address),
            Buffer.concat(chunks).toString(),
          ),
        )
        events.emit('email')
        done()
      })
    },
  })
  const port = await freePort()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  t.teardown(() => new Promise<void>((resolve) => server.close(resolve)))
  return {
    url: `smtp://127.0.0.1:${port}`,
    emails,
    arrived: async (count) => {
      // The work of a server in another process cannot be seen, only its emails.
      if (executable === undefined) await allSent()
      else while (emails.length < count) await once(events, 'email')
      const email = emails[count - 1]
      if (email === undefined) throw new Error(`${emails.length} emails were sent, not ${count}`)
      return email
    },
  }
}

function read(from: string, to: readonly string[], source: string): Received {
  const [head = ''] = source.split('\r\n\r\n', 1)
  const subject = /^Subject: ((?:.|\r\n[ \t])*)/m.exec(head)?.[1] ?? ''
  const bodies = source.split(/\r\n--[^\r\n]+(?:--)?\r\n/).slice(1)
  const [text = '', html = ''] = bodies.map(decodeBody)
  const url = /https?:\/\/\S+/.exec(text)?.[0] ?? ''
  return { from, to, source, subject: decodeWords(subject), text, html, url }
}

/** Quoted-printable or base64, RFC 2045 §6. */
function decodeBody(part: string): string {
  const at = part.indexOf('\r\n\r\n')
  const [head, body] = [part.slice(0, at), part.slice(at + 4)]
  if (/encoding: base64/i.test(head)) return Buffer.from(body, 'base64').toString()
  return /quoted-printable/i.test(head) ? fromQuotedPrintable(body) : body
}

function fromQuotedPrintable(body: string): string {
  const bytes = body
    .replaceAll(/=\r\n/g, '')
    .replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString()
}

/** Encoded words, RFC 2047. */
function decodeWords(text: string): string {
  return text
    .replaceAll(/\?=\r\n[ \t]=\?/g, '?==?')
    .replaceAll(/=\?utf-8\?([QB])\?(.*?)\?=/gi, (_, kind: string, word: string) =>
      kind.toUpperCase() === 'B'
        ? Buffer.from(word, 'base64').toString()
        : fromQuotedPrintable(word.replaceAll('_', ' ')),
    )
}
