import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** A key and a certificate for it. */
export interface Credentials {
  readonly key: string
  readonly cert: string
}

/** A certificate authority and the certificates it signed for one key. */
export interface Certificates {
  readonly authority: string
  readonly localhost: Credentials
  readonly otherName: Credentials
  /** For 127.0.0.1, and no name. */
  readonly address: Credentials
  readonly expired: Credentials
}

const authorityConfig = `[ca]
default_ca = authority
[authority]
database = index
serial = serial
new_certs_dir = .
certificate = ca.pem
private_key = ca.key
default_md = sha256
policy = names
copy_extensions = copy
unique_subject = no
[names]
commonName = supplied
`

/** Creates them in this empty folder with openssl, which can also create an expired one. */
export function makeCertificates(folder: string): Certificates {
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' })
  const read = (name: string) => readFileSync(join(folder, name), 'utf8')
  writeFileSync(join(folder, 'ca.cnf'), authorityConfig)
  writeFileSync(join(folder, 'index'), '')
  writeFileSync(join(folder, 'serial'), '01\n')
  const newKey = ['-newkey', 'rsa:2048', '-nodes', '-keyout']
  openssl('req', '-x509', ...newKey, 'ca.key', '-out', 'ca.pem', '-days', '2', '-subj', '/CN=Test authority')
  openssl('req', '-new', ...newKey, 'key.pem', '-out', 'first.csr', '-subj', '/CN=first')
  const sign = (name: string, from: string, until: string, kind = 'DNS'): Credentials => {
    const subject = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=${kind}:${name}`]
    openssl('req', '-new', '-key', 'key.pem', '-out', 'request.csr', ...subject)
    const term = ['-startdate', from, '-enddate', until]
    openssl('ca', '-batch', '-notext', '-config', 'ca.cnf', '-in', 'request.csr', '-out', 'cert.pem', ...term)
    return { key: read('key.pem'), cert: read('cert.pem') }
  }
  const [then, later] = ['20200101000000Z', '20490101000000Z']
  return {
    authority: read('ca.pem'),
    localhost: sign('localhost', then, later),
    otherName: sign('auth.example.org', then, later),
    address: sign('127.0.0.1', then, later, 'IP'),
    expired: sign('localhost', then, '20200201000000Z'),
  }
}
