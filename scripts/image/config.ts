import { commit, version } from '../build/origin.ts'
import { user } from './content.ts'

const prefix = 'org.opencontainers.image'

/** Returns how the image is run by default; deploy/Dockerfile has the same. */
export function imageConfig(created: string) {
  return {
    User: `${user}:${user}`,
    ExposedPorts: { '9400/tcp': {} },
    Env: [
      'PATH=/usr/local/bin',
      'LYCHGATE_DATA=/data',
      'LYCHGATE_HOST=0.0.0.0',
      'LYCHGATE_PORT=9400',
      'MALLOC_MMAP_THRESHOLD_=1048576',
    ],
    Entrypoint: ['lychgate'],
    Cmd: ['serve'],
    Volumes: { '/data': {} },
    WorkingDir: '/data',
    StopSignal: 'SIGTERM',
    // Nanoseconds. Docker reads it; Kubernetes has probes of its own.
    Healthcheck: {
      Test: ['CMD', 'lychgate', 'healthcheck'],
      Interval: 10e9,
      Timeout: 5e9,
      StartPeriod: 30e9,
    },
    Labels: {
      [`${prefix}.title`]: 'Lychgate',
      [`${prefix}.description`]: 'An OAuth 2.0 and OpenID Connect server',
      [`${prefix}.licenses`]: 'Apache-2.0',
      [`${prefix}.version`]: version,
      [`${prefix}.revision`]: commit(),
      [`${prefix}.created`]: created,
    },
  }
}
