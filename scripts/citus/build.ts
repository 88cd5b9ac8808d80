import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, globSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { downloadPackages, ProgramsMissing, unpackPackages } from '../debian/packages.ts'

/** Where builds stay: one takes minutes. */
const builds = resolve('node_modules/.cache/citus')
/** The PostgreSQL of Debian that it is built for: 15.20 declares what the source of 13.2.2 defines itself. */
const [postgres, debian] = ['15', '15.18-0+deb12u1']

/**
 * Returns the folder of the programs of a PostgreSQL that has Citus.
 * @param from A folder with the source of Citus, which is built once, or the folder of such programs.
 * @throws {ProgramsMissing}
 */
export function programsWithCitus(from: string): string {
  if (existsSync(join(from, 'pg_config'))) {
    const libraries = run(join(from, 'pg_config'), ['--pkglibdir']).trim()
    if (existsSync(join(libraries, 'citus.so'))) return from
    throw new ProgramsMissing(`${from}: this PostgreSQL has no Citus`)
  }
  if (!existsSync(join(from, 'configure')) || !existsSync(join(from, 'src/backend/distributed')))
    throw new ProgramsMissing(`${from}: neither the source of Citus nor the programs of a PostgreSQL with it`)
  const version = /PACKAGE_VERSION='(.*)'/.exec(
    run('grep', ['PACKAGE_VERSION=', join(from, 'configure')]),
  )?.[1]
  const target = join(builds, `${version}-${postgres}`)
  if (!existsSync(target)) build(from, target)
  return programsIn(target)
}

function programsIn(root: string): string {
  return join(root, 'usr/lib/postgresql', postgres, 'bin')
}

/** PostgreSQL, and what its headers and those of Citus need. */
const packages = [
  ...['postgresql', 'postgresql-client', 'postgresql-server-dev'].map(
    (name) => `${name}-${postgres}=${debian}`,
  ),
  ...[
    `libpq5=${debian}`,
    `libpq-dev=${debian}`,
    'libicu-dev',
    'libssl-dev',
    'libreadline-dev',
    'krb5-multidev',
    'comerr-dev',
  ],
  ...['liblz4-1', 'liblz4-dev', 'libzstd1', 'libzstd-dev'],
]

/** PostgreSQL finds its files from its own path: nothing is installed. What its headers need comes with it. */
function build(from: string, target: string): void {
  const folder = mkdtempSync(join(tmpdir(), 'lychgate-citus-'))
  try {
    const root = join(folder, 'root')
    unpackPackages(downloadPackages(folder, packages, { isAlone: true }), root)
    const source = join(folder, 'source')
    cpSync(from, source, { recursive: true })
    const multiarch = run('gcc', ['-print-multiarch']).trim()
    const environment = {
      PG_CONFIG: join(programsIn(root), 'pg_config'),
      CPATH: [
        join(root, 'usr/include'),
        join(root, 'usr/include', multiarch),
        join(root, 'usr/include/mit-krb5'),
      ].join(':'),
      LIBRARY_PATH: [join(root, 'usr/lib', multiarch), join('/usr/lib', multiarch)].join(':'),
    }
    // As old as what it is made from, it would be made again.
    run('touch', [join(source, 'configure')])
    run('sh', ['configure', '--without-libcurl'], { cwd: source, environment })
    for (const goal of ['all', 'install'])
      run('nice', ['-n', '15', 'make', '-j2', 'with_llvm=no', goal], { cwd: source, environment })
    if (globSync(join(root, 'usr/lib/postgresql', postgres, 'lib/citus.so')).length === 0)
      throw new Error('the build has no citus.so')
    mkdirSync(builds, { recursive: true })
    cpSync(root, `${target}.new`, { recursive: true, verbatimSymlinks: true })
    renameSync(`${target}.new`, target)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

interface Surroundings {
  readonly cwd?: string
  readonly environment?: NodeJS.ProcessEnv
}

function run(program: string, args: readonly string[], { cwd, environment = {} }: Surroundings = {}): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    encoding: 'utf8',
    cwd,
    env: { ...process.env, ...environment },
    maxBuffer: 2 ** 28,
  })
  if (error !== undefined) throw new ProgramsMissing(`${program}: ${error.message}`)
  if (status !== 0)
    throw new Error(`${program} ${args.join(' ')} ended with ${status}: ${(stderr || stdout).slice(-2000)}`)
  return stdout
}
