import fp from 'fastify-plugin'
import type { AppDeps } from '../deps.ts'
import { openProbe, probeHeader, type Sighting, sealSighting, sightingHeader } from '../domain/probe.ts'

/**
 * Tells `lychgate doctor` how its request arrived: domain/probe.ts says who can ask. Every path answers, so that it
 * sees what a proxy does to the ones that matter; to anybody else no answer differs.
 */
export const probes = fp<Pick<AppDeps, 'keys' | 'clock'>>(
  async (app, { keys, clock }) => {
    // With `done` and not as a promise: every request comes this way, and hardly any carries a probe.
    app.addHook('onRequest', (request, reply, done) => {
      const value = request.headers[probeHeader]
      const opened = value === undefined ? undefined : openProbe(value, clock(), keys.handleSecrets)
      if (opened === undefined) return done()
      const forwardedFor = request.headers['x-forwarded-for']
      const sighting: Sighting = {
        peer: request.socket.remoteAddress ?? '',
        countedAs: request.ip,
        ...(forwardedFor !== undefined && { forwardedFor: [forwardedFor].flat().join(', ') }),
        // All addresses up to the first that is not trusted: more than the peer alone when the header was believed.
        isPeerTrusted: (request.ips?.length ?? 0) > 1,
        headers: Object.keys(request.headers),
      }
      reply.header(sightingHeader, sealSighting(sighting, opened.probe, opened.secret))
      done()
    })
  },
  { name: 'probes' },
)
