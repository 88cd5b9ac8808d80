import fc from 'fast-check'

/**
 * fast-check with one seed for everything it generates: every run is the same, so a failure in CI can be repeated.
 * `GENERATED_SEED` chooses another.
 */
fc.configureGlobal({ seed: Number(process.env['GENERATED_SEED'] ?? 20_261_120) })

export { fc }
