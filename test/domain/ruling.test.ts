import t from 'tap'
import { held, type Ruling, rulingChannel } from '../../src/domain/ruling.ts'

t.test('whoever listens hears which rule held, with what was stored and received', async (t) => {
  const heard: Ruling[] = []
  const hear = (ruling: unknown) => void heard.push(ruling as Ruling)
  held('rfc7636-4.6-verify-s256', 'nobody hears this')
  rulingChannel.subscribe(hear)
  held('rfc7636-4.6-verify-s256', 'it matches', 'a', 'b')
  rulingChannel.unsubscribe(hear)
  held('rfc7636-4.6-verify-s256', 'nor this')
  t.strictSame(heard, [{ rule: 'rfc7636-4.6-verify-s256', found: 'it matches', stored: 'a', received: 'b' }])
})
