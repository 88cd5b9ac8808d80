/** Node for another platform, which npm does not install here. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../build/bundle.ts'

/**
 * Gets the package of Node for a platform, such as `win-x64`, where npm gets its packages, compares it with the lockfile,
 * and returns the folder that it is unpacked to.
 */
export function unpackNode(work: string, platform: string): string {
  const name = `node-${platform}`
  const { packages } = JSON.parse(readFileSync(`${root}package-lock.json`, 'utf8'))
  const { version, integrity } = packages[`node_modules/${name}`]
  execFileSync('npm', ['pack', `${name}@${version}`, '--silent', '--pack-destination', work], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const packed = join(work, `${name}-${version}.tgz`)
  const digest = `sha512-${createHash('sha512').update(readFileSync(packed)).digest('base64')}`
  if (digest !== integrity) throw new Error(`${name} ${version} is not what package-lock.json says`)
  execFileSync('tar', ['--extract', `--file=${packed}`, `--directory=${work}`])
  return join(work, 'package')
}
