import { IncomingMessage, type OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import t from 'tap'
import { assertDefaultsAreSent, Response } from '../../src/http/response.ts'

t.test('this Node.js sends default headers', async (t) => {
  t.doesNotThrow(() => assertDefaultsAreSent())
})

t.test('a Node.js that makes the head of a response in another way is reported', async (t) => {
  class Unchanged extends Response {
    override _storeHeader(statusLine: string, headers: OutgoingHttpHeaders = {}): void {
      // As if Node called something else.
      const { _storeHeader: usual } = ServerResponse.prototype as unknown as Pick<Response, '_storeHeader'>
      usual.call(this, statusLine, headers)
    }
  }
  const response = new Unchanged(new IncomingMessage(new Socket()))
  t.throws(() => assertDefaultsAreSent(response), {
    message: /Node\.js [0-9.]+ makes responses in another way/,
  })
})
