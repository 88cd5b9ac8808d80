import t from 'tap'
import { connectionFault, howToEncode, isUnambiguousUrl, shownUrl } from '../../src/domain/server-url.ts'

t.test('what follows the user name up to the host is never shown', async (t) => {
  const shown: [string, string][] = [
    ['postgres://app:Geheim1@db.example:5432/auth', 'postgres://app:***@db.example:5432/auth'],
    ['postgresql://app:Ge@heim1@db.example/auth', 'postgresql://app:***@db.example/auth'],
    ['postgres://app:Ge:Geheim1@[2001:db8::1]/auth', 'postgres://app:***@[2001:db8::1]/auth'],
    [
      'postgres://app:Ge heim1%40@db.example/auth?sslpassword=Geheim1',
      'postgres://app:***@db.example/auth?***',
    ],
    ['postgres://app:Geheim1@/auth?host=/run/postgresql', 'postgres://app:***@/auth?***'],
    ['postgres://app:Geheim1@%2Frun%2Fpostgresql/auth', 'postgres://app:***@%2Frun%2Fpostgresql/auth'],
    ['postgres:///auth?host=/run/postgresql&password=Geheim1', 'postgres:///auth?***'],
    ['postgres://:Geheim1@db.example/auth', 'postgres://:***@db.example/auth'],
    ['postgres://app@db.example/auth', 'postgres://app@db.example/auth'],
    ['postgres://db.example:5432', 'postgres://db.example:5432'],
    ['smtp://ada@example.org:Geheim1@smtp.example:587', 'smtp://ada@example.org:***@smtp.example:587'],
    ['sqlite:/var/lib/lychgate/lychgate.db', 'sqlite:/var/lib/lychgate/lychgate.db'],
  ]
  for (const [url, expected] of shown) t.equal(shownUrl(url), expected, url)
  const ambiguous = [
    'postgres://app:pa@Geheim1/w#rd@db.example:5432/x',
    'postgres://app:Geheim1/2@db.example/x',
    'postgres://app:1/Geheim1@db.example/x',
    'postgres://app:pa@Geheim1?2@db.example/x',
    'postgres://app:1#Geheim1@db.example/x',
    'postgres://app:Geheim1#2',
    'postgres://app:Geheim1',
    'postgres://app:pass@db.example/x?password=Geheim1@2',
    'postgres://app:pass@db.example,Geheim1/x',
    'host=db.example user=app password=Geheim1',
    'Geheim1',
  ]
  for (const url of ambiguous) {
    t.notOk(isUnambiguousUrl(url), url)
    t.equal(shownUrl(url), '***', url)
    const fault = Object.assign(new Error('getaddrinfo ENOTFOUND Geheim1'), { code: 'ENOTFOUND' })
    t.equal(connectionFault(url, fault), `ENOTFOUND; ${howToEncode}`)
    t.equal(connectionFault(url, new Error('Geheim1')), `the URL cannot be read; ${howToEncode}`)
  }
})

t.test('a connection error says what the driver says where the host is certain', async (t) => {
  const url = 'postgres://app:pa@ss@db.example/auth'
  t.equal(
    connectionFault(url, new Error('getaddrinfo ENOTFOUND db.example')),
    'getaddrinfo ENOTFOUND db.example',
  )
  t.equal(
    connectionFault(url, Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' })),
    'ECONNREFUSED',
  )
  t.equal(
    connectionFault('postgres://app:pa%ss@db.example/auth', new URIError('URI malformed')).includes('%25'),
    true,
  )
})
