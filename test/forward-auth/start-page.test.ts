/** The start page has the hosts that forward auth protects, if their rules let the user in. */
import t from 'tap'
import { accept, put, update } from '../../src/domain/decision.ts'
import { createGroup } from '../../src/domain/group.ts'
import type { Client } from '../../src/domain/model.ts'
import { systemRandom } from '../../src/system/system.ts'
import { addToGroup, changeGroups } from '../../src/users/groups.ts'
import { secondFactorKind } from '../../src/users/rules/second-factor.ts'
import { protect } from '../helpers/protected-host.ts'
import { alice, bob, startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { enter, textOf } from '../pages/account/sections.ts'

const server = await startServer(t)
const { store } = server.deps
const operator = { by: 'operator', at: server.now() } as const
const aliceId = (await store.find('userByLogin', 'alice'))?.id ?? ''
const staff = await changeGroups(store, (groups) =>
  createGroup(groups, { name: 'staff' }, systemRandom(16), operator),
)
const startPage = (user = alice) => enter(server, new UserAgent(server.issuer), '/start', user)
const hostsOn = ({ html }: { readonly html: string }) =>
  [...html.matchAll(/href="https:\/\/([^"/]+\.home\.example(?::\d+)?)\/"/g)].map(([, host]) => host)

t.test('a host is on the page of each user who may see its front page', async (t) => {
  await protect(server, 'open.home.example')
  await protect(server, 'port.home.example:8443', [{ path: '/admin/*', groups: [staff.id] }])
  await protect(server, 'staff.home.example', [{ path: '/*', groups: [staff.id] }])
  await protect(server, 'safe.home.example', [{ path: '/', second_factor: true }])
  await protect(server, 'board.home.example', [], { description: { allowed_groups: [staff.id] } })
  const page = await startPage()
  t.strictSame(hostsOn(page), ['open.home.example', 'port.home.example:8443'])
  t.match(textOf(page), 'Some apps open only once you have set up a second step')
  await addToGroup(store, staff, aliceId, operator)
  t.strictSame(hostsOn(await startPage()), [
    'board.home.example',
    'open.home.example',
    'port.home.example:8443',
    'staff.home.example',
  ])
  const agent = new UserAgent(server.issuer)
  await enter(server, agent, '/start')
  const codes = { userId: aliceId, sealedSecret: 'sealed', recoveryHashes: [], createdAt: server.now() }
  await store.write(put(secondFactorKind, { ...codes, confirmedAt: server.now() }))
  t.ok(hostsOn(await enter(server, agent, '/start')).includes('safe.home.example'))
})

t.test('a host that an operator locked is not there', async (t) => {
  const id = await protect(server, 'locked.home.example')
  t.ok(hostsOn(await startPage(bob)).includes('locked.home.example'))
  await store.transact('client', id, (client) =>
    accept(undefined, update('client', { ...(client as Client), lockedAt: server.now() })),
  )
  t.notOk(hostsOn(await startPage(bob)).includes('locked.home.example'))
})
