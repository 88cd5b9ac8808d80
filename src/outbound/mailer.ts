import { connect, type Socket } from 'node:net'
import type { Transporter } from 'nodemailer'
import type { Config } from '../config/schema.ts'

/** One email, in plain text and as simple HTML with the same contents. */
export interface Email {
  readonly to: string
  readonly subject: string
  readonly text: string
  readonly html: string
}

/** A mail server and who writes. */
export interface Sender {
  readonly url: string
  readonly from: string
  readonly replyTo?: string
}

/** The mail server rejected an email; the message is one line for an operator, without a password. */
export class MailFailed extends Error {
  constructor(line: string, options: ErrorOptions) {
    super(line, options)
    this.name = 'MailFailed'
  }
}

const connectMilliseconds = 10_000
const idleMilliseconds = 20_000
/** For everything together, however slowly the mail server talks. */
const longestMilliseconds = 30_000

/** Returns the mail server and sender of this server; undefined where none is set. */
export function senderOf({ mail }: Pick<Config, 'mail'>): Sender | undefined {
  const { url, from, replyTo } = mail
  if (url === undefined || from === undefined) return undefined
  return { url, from, ...(replyTo !== undefined && { replyTo }) }
}

/**
 * Sends one email to the mail server.
 * @throws {MailFailed} unless the server took it.
 */
export async function sendEmail(
  sender: Sender,
  email: Email,
  milliseconds = longestMilliseconds,
): Promise<void> {
  const { from, replyTo } = sender
  await withTransport(sender, 'did not accept the email', milliseconds, (transport) =>
    transport.sendMail({
      ...email,
      // As one address: parsed, a comma in it would make two.
      to: { name: '', address: email.to },
      from,
      ...(replyTo !== undefined && { replyTo }),
      // RFC 3834 §5: no out-of-office reply, please.
      headers: { 'auto-submitted': 'auto-generated' },
    }),
  )
}

/**
 * Connects as for an email, with STARTTLS and the password, and sends none.
 * @throws {MailFailed} unless the server is there and lets this sender in.
 */
export async function greetMailServer(sender: Sender): Promise<void> {
  await withTransport(sender, 'does not let us in', longestMilliseconds, (transport) => transport.verify())
}

async function withTransport(
  { url }: Sender,
  fault: string,
  milliseconds: number,
  use: (transport: Transporter) => Promise<unknown>,
): Promise<void> {
  // Loaded late: few requests and commands send mail.
  const { createTransport } = await import('nodemailer')
  const server = new URL(url)
  let socket: Socket | undefined
  const transport = createTransport({
    url,
    requireTLS: mustEncrypt(server),
    connectionTimeout: connectMilliseconds,
    greetingTimeout: connectMilliseconds,
    socketTimeout: idleMilliseconds,
    disableFileAccess: true,
    disableUrlAccess: true,
    getSocket: (_options, callback) => {
      socket = connectTo(server)
      const failed = (error: Error) => callback(error, undefined)
      socket.once('error', failed).once('connect', () => {
        socket?.off('error', failed)
        callback(null, { connection: socket })
      })
    },
  })
  let timer: NodeJS.Timeout | undefined
  const overdue = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`not done in ${milliseconds / 1000} s`)), milliseconds)
  })
  try {
    await Promise.race([use(transport), overdue])
  } catch (cause) {
    throw new MailFailed(`mail: ${server.host} ${fault} (${reasonOf(cause)})`, { cause })
  } finally {
    clearTimeout(timer)
    transport.close()
    socket?.destroy()
  }
}

/** Connects to the first address that responds; the caller has the socket, to close it whatever happens. */
function connectTo({ protocol, hostname, port }: URL): Socket {
  const socket = connect({
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(port || (protocol === 'smtps:' ? 465 : 587)),
    autoSelectFamily: true,
  })
  const tooLate = () => socket.destroy(new Error('Connection timeout'))
  const timer = setTimeout(tooLate, connectMilliseconds)
  socket.once('connect', () => clearTimeout(timer)).once('close', () => clearTimeout(timer))
  return socket
}

/** A password never travels in the clear, not even if an attacker in between hides STARTTLS. */
function mustEncrypt({ protocol, hostname, password }: URL): boolean {
  const isLocal = ['localhost', '127.0.0.1', '[::1]'].includes(hostname)
  return protocol === 'smtp:' && password !== '' && !isLocal
}

function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause)
  const { code, response } = cause as Error & { readonly code?: string; readonly response?: string } // nodemailer's
  const said = (response ?? cause.message).replaceAll(/[^\P{C}]+/gu, ' ').slice(0, 200)
  return code === undefined ? said : `${code}: ${said}`
}
