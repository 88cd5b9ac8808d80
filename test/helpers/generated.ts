import fc from 'fast-check'

/**
 * fast-check with one seed for all that is generated: a run is the same as the one before, and what CI meets can be met
 * again. `GENERATED_SEED` chooses another.
 */
fc.configureGlobal({ seed: Number(process.env['GENERATED_SEED'] ?? 20_261_120) })

export { fc }
