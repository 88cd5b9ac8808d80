/**
 * `lychgate prove` against servers of others, in the versions that scripts/clients pins: what a run finds is what
 * docs/peers.md has, where each failed clause was compared with the text by hand. A server that cannot be had prints
 * SKIPPED with the reason, which is a failure with CI=true.
 */
import t from 'tap'
import { ask, documented, peers } from '../../scripts/peers.ts'
import { newFolder } from '../helpers/command.ts'
import { freePort } from '../helpers/free-port.ts'

const folder = newFolder(t)

for (const peer of peers) {
  t.test(`docs/peers.md has what a run finds at ${peer.name}`, async (t) => {
    const installed = peer.install(folder)
    if (typeof installed === 'string') {
      t.comment(`SKIPPED: ${installed}`)
      return t.not(process.env['CI'], 'true', 'nothing is skipped in CI')
    }
    const { heading, section, remaining } = await ask(peer, installed, await freePort(), folder)
    t.equal(section, documented(heading))
    return peer.keepsClients ? t.not(remaining.length, 0) : t.strictSame(remaining, [])
  })
}
