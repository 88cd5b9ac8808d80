/**
 * Removes each optional specification from a copy of the project (its folder, its line in features.ts, its generated
 * API description), and shows that the rest compiles, starts, works and no longer mentions it.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Argument } from 'commander'
import { scriptCommand } from './command.ts'
import { quickStart } from './quick-start.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const compiler = join(root, 'node_modules/typescript-native/bin/tsc')
/** Where the compiler keeps what it found out about a copy. */
const known = 'removable.tsbuildinfo'
const checking = ['--project', 'tsconfig.removable.json', '--incremental', '--tsBuildInfoFile', known]

/** The folders that can be removed, and what no public document may contain then. */
const removable: Readonly<Record<string, readonly string[]>> = {
  'client-id-metadata': ['client_id_metadata_document_supported'],
  'fapi2-security-profile': ['fapi2', 'security_profile'],
  'admin-api': ['admin:users'],
  'admin-pages': ['/admin"'],
  groups: ['"groups"'],
  'oidc-backchannel-logout': ['backchannel_logout', '"sid"'],
  'oidc-core': ['userinfo', 'subject_types_supported', '"id_token"', 'claims_supported'],
  'oidc-logout': ['end_session_endpoint', '/oauth/logout'],
  'rfc6749-client-credentials': ['client_credentials'],
  'rfc7009-revocation': ['revocation_endpoint', '/api/oauth/revoke'],
  'rfc7523-client-assertions': ['private_key_jwt', 'client_assertion', 'auth_signing_alg_values_supported'],
  'rfc7591-registration': ['registration_endpoint', 'registration_client_uri', '/api/oauth/register'],
  'rfc7662-introspection': ['introspection_endpoint', '/api/oauth/introspect'],
  'rfc9101-request-objects': ['request_object', 'require_request_uri_registration', '"request"'],
  'rfc9126-pushed-requests': ['pushed'],
  'rfc9449-dpop': ['dpop', 'DPoP'],
  'rfc8628-device-grant': ['device_authorization', 'device_code'],
  'rfc9207-issuer': ['authorization_response_iss_parameter_supported'],
}

/** The specifications that stay, and why. */
const staying: Readonly<Record<string, string>> = {
  'rfc6749-authorization': 'the core',
  'rfc8414-metadata': 'the core: endpoints advertise themselves there',
  'rfc9728-resource-metadata': 'every challenge of the guard points to its document (RFC 9728 §5.1)',
}

const { args } = scriptCommand(
  'check:removable',
  'Take each optional specification out of a copy of the project.',
)
  .addArgument(new Argument('[folder...]', 'only these').choices(Object.keys(removable)))
  .parse()
const wanted = Object.keys(removable).filter((folder) => args.length === 0 || args.includes(folder))
const workspace = mkdtempSync(join(tmpdir(), 'lychgate-removable-'))
// Checked once as a whole: each copy after it has the compiler check again only what the removal affects. The copies
// are at one place, so that Node compiles what they share once.
const whole = join(workspace, 'whole')
const copy = join(workspace, 'copy')
const compiled = join(workspace, 'compiled')
copyProject(root, whole)
run(whole, process.execPath, [compiler, ...checking])
const removed = wanted.filter(isRemovable)
rmSync(workspace, { recursive: true })
for (const [folder, why] of Object.entries(staying)) process.stdout.write(`stays    ${folder}: ${why}\n`)
process.stdout.write(`\n${removed.length} of ${wanted.length} can be removed\n`)
process.exitCode = removed.length === wanted.length ? 0 : 1

function isRemovable(folder: string): boolean {
  const began = performance.now()
  copyProject(whole, copy)
  try {
    takeOut(folder)
    run(copy, process.execPath, [compiler, ...checking])
    run(copy, process.execPath, ['scripts/openapi.ts'])
    run(copy, process.execPath, ['test/removable/smoke.ts', ...(removable[folder] ?? [])])
    process.stdout.write(`removed  ${folder}, ${Math.round((performance.now() - began) / 1000)} s\n`)
    return true
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: Buffer | string; stderr?: Buffer | string }
    process.stdout.write(`FAILED   ${folder}\n${stdout}${stderr || error}\n`)
    return false
  } finally {
    rmSync(copy, { recursive: true })
  }
}

/** Deletes the folder and its line: the import, and the entry of the list. */
function takeOut(folder: string): void {
  rmSync(join(copy, 'src', folder), { recursive: true })
  const list = join(copy, 'src/features.ts')
  const text = readFileSync(list, 'utf8')
  const [line, name] =
    new RegExp(`^import \\{ (\\w+) \\} from './${folder}/feature.ts'\\n`, 'm').exec(text) ?? []
  if (line === undefined) throw new Error(`src/features.ts does not import ${folder}`)
  writeFileSync(list, text.replace(line, '').replace(`\n  ${name},`, ''))
}

/** Copies the parts of a project that the check needs, and what the compiler knows about them if it ran there. */
function copyProject(from: string, to: string): void {
  const tests = ['test/helpers', 'test/removable']
  for (const part of [
    'src',
    'views',
    'drizzle',
    'openapi',
    'scripts',
    'package.json',
    'tsconfig.json',
    ...tests,
  ])
    cpSync(join(from, part), join(to, part), { recursive: true, filter: isOurs })
  if (existsSync(join(from, known))) cpSync(join(from, known), join(to, known))
  symlinkSync(join(root, 'node_modules'), join(to, 'node_modules'))
  const project = { extends: './tsconfig.json', include: ['src', 'scripts/openapi.ts', 'test/removable'] }
  writeFileSync(join(to, 'tsconfig.removable.json'), JSON.stringify(project))
}

/** Some scripts have packages of their own. */
function isOurs(path: string): boolean {
  return basename(path) !== 'node_modules'
}

function run(cwd: string, file: string, args: readonly string[]): void {
  const path = `${join(root, 'node_modules/.bin')}:${process.env['PATH']}`
  execFileSync(file, args, {
    cwd,
    env: { ...process.env, ...quickStart(compiled), PATH: path },
    stdio: 'pipe',
  })
}
