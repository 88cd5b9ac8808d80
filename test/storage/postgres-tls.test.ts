/** With `sslmode=verify-full`, the certificate of a PostgreSQL server must be for the host of the URL. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { TLSSocket } from 'node:tls'
import t from 'tap'
import { openStore } from '../../src/storage/open.ts'
import { type Credentials, makeCertificates } from '../helpers/certificates.ts'
import { newFolder } from '../helpers/command.ts'

const folder = newFolder(t)
mkdirSync(join(folder, 'authority'))
const certificates = makeCertificates(join(folder, 'authority'))
const authority = join(folder, 'authority.pem')
writeFileSync(authority, certificates.authority)

/** The response to an SSLRequest. */
const tlsAccepted = 'S'
/** An ErrorResponse with SQLSTATE 28000: the server was asked for a session, so it was trusted. */
const denial = Buffer.from('SFATAL\0C28000\0Mno session here\0\0')
const header = Buffer.from([0x45, 0, 0, 0, denial.length + 4])

/** A server that speaks PostgreSQL up to the first message after TLS, which it rejects. */
async function serverWith({ key, cert }: Credentials): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => {
      socket.write(tlsAccepted)
      const secure = new TLSSocket(socket, { isServer: true, key, cert })
      secure.on('error', () => undefined)
      secure.once('data', () => secure.end(Buffer.concat([header, denial])))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port // `as`: it listens on TCP
}

const trusted = /no session here/
const cases: readonly [
  string,
  keyof typeof certificates & ('localhost' | 'otherName' | 'address'),
  RegExp,
][] = [
  ['localhost', 'localhost', trusted],
  ['localhost', 'otherName', /does not match certificate's altnames/],
  ['127.0.0.1', 'address', trusted],
  ['127.0.0.1', 'localhost', /does not match certificate's altnames/],
]
for (const [host, name, outcome] of cases) {
  t.test(`verify-full with the host ${host} and a certificate for ${name}`, async (t) => {
    const port = await serverWith(certificates[name])
    const url = `postgres://lychgate:secret@${host}:${port}/lychgate?sslmode=verify-full&sslrootcert=${authority}`
    await t.rejects(openStore(url), { message: outcome })
  })
}
