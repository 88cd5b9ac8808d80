import { SMTPServer } from 'smtp-server'
import { freePort } from './free-port.ts'

/** One letter as the mail server took it. */
export interface Received {
  readonly from: string
  readonly to: readonly string[]
  /** The whole message: headers, then both bodies. */
  readonly source: string
  readonly subject: string
  readonly text: string
  readonly html: string
  /** The one link in it. */
  readonly url: string
}

/** A mail server that keeps what it takes. */
export interface Mailbox {
  readonly url: string
  readonly emails: Received[]
  /** Waits until there are so many. */
  arrived(count: number): Promise<Received>
}

/** Starts a real mail server on a free port; with `refuse` it takes nothing. */
export async function startMailbox(
  t: { teardown(end: () => unknown): unknown },
  { reject = false }: { readonly reject?: boolean } = {},
): Promise<Mailbox> {
  const emails: Received[] = []
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onRcptTo: (_address, _session, done) => done(reject ? new Error('nobody here') : undefined),
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
      while (emails.length < count) await new Promise((resolve) => setTimeout(resolve, 10))
      const email = emails[count - 1]
      if (email === undefined) throw new Error('no letter')
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
