/** What is made for users depends on its content alone, and says who made it. */
import { spawnSync } from 'node:child_process'
import { generateKeyPairSync, verify } from 'node:crypto'
import { chmodSync, globSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { root } from '../../scripts/build/bundle.ts'
import { writePackage } from '../../scripts/deb/content.ts'
import { writeArchive } from '../../scripts/image/archive.ts'
import { imageConfig } from '../../scripts/image/config.ts'
import { envelope, sha256, statement } from '../../scripts/release/provenance.ts'
import { withoutSignature } from '../../scripts/release/windows.ts'
import { isoInstant } from '../../src/system/system.ts'
import { newFolder } from '../helpers/command.ts'

const instant = 1_700_000_000

/** The umask of someone who keeps files private, for one test. */
function withUmask(t: Test, mask: number): void {
  const own = process.umask(mask)
  t.teardown(() => process.umask(own))
}

t.test('the bytes of an image do not depend on the umask or the time', async (t) => {
  const archiveOf = async (mode: number) => {
    const folder = newFolder(t)
    for (const name of ['b', 'a']) writeFileSync(join(folder, name), name)
    chmodSync(join(folder, 'a'), mode)
    const layers = [
      { folder, path: '.', title: 'files' },
      { folder, path: 'b', title: 'one', owner: '10001:0', mode: '0770' },
    ]
    const config = imageConfig(isoInstant(instant))
    const file = join(newFolder(t), 'image.tar')
    const of = { created: isoInstant(instant), architecture: 'amd64', config }
    await writeArchive(file, layers, of, instant)
    return sha256(file)
  }
  const first = await archiveOf(0o644)
  withUmask(t, 0o077)
  t.equal(await archiveOf(0o600), first)
  t.not(await archiveOf(0o755), first, 'a program is not a file')
})

t.test('the modes of files in the Debian package do not depend on the umask', async (t) => {
  withUmask(t, 0o077)
  const [folder, work] = [join(newFolder(t), 'tree'), newFolder(t)]
  const executable = join(work, 'lychgate')
  for (const path of [executable, `${executable}.licences.txt`, join(work, 'driver')]) writeFileSync(path, '')
  chmodSync(executable, 0o755)
  const driver = join(work, 'driver')
  await writePackage(folder, {
    sources: root,
    executable,
    version: '1',
    architecture: 'amd64',
    driver,
    instant,
  })
  const modes = globSync(['.', '**'], { cwd: folder }).map((path) => {
    const stats = statSync(join(folder, path))
    const isProgram = path === 'usr/bin/lychgate' || /^DEBIAN\/(post|pre)/.test(path)
    return [path, stats.mode & 0o777, stats.isDirectory() || isProgram ? 0o755 : 0o644] as const
  })
  t.ok(modes.length > 30)
  for (const [path, mode, expected] of modes) t.equal(mode, expected, path)
})

t.test('the provenance names each file, and only a key signs it', async (t) => {
  const work = newFolder(t)
  const made = join(work, 'lychgate')
  writeFileSync(made, 'content')
  const content = statement([made])
  t.match(content, { subject: [{ name: 'lychgate', digest: { sha256: sha256(made) } }] })
  t.match(envelope(content, undefined), { signatures: [], unsigned: true })
  for (const { privateKey, publicKey } of [
    generateKeyPairSync('ed25519'),
    generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  ]) {
    const file = join(work, 'key.pem')
    writeFileSync(file, privateKey.export({ type: 'pkcs8', format: 'pem' }))
    const signed = JSON.parse(JSON.stringify(envelope(content, file)))
    const payload = Buffer.from(signed.payload, 'base64')
    t.strictSame(JSON.parse(payload.toString()), content)
    // DSSE 1.0: the type and the length of each part are signed with it.
    const text = Buffer.from(`DSSEv1 28 application/vnd.in-toto+json ${payload.length} ${payload}`)
    const algorithm = publicKey.asymmetricKeyType === 'ed25519' ? null : 'sha256'
    const [{ sig, keyid }] = signed.signatures
    t.ok(verify(algorithm, text, publicKey, Buffer.from(sig, 'base64')))
    t.match(keyid, /^[0-9a-f]{64}$/)
    t.notOk('unsigned' in signed)
  }
})

t.test(
  'release:verify accepts what the key signed, and rejects a changed, added or unsigned file',
  async (t) => {
    const work = newFolder(t)
    const pem = (name: string) => {
      const { privateKey, publicKey } = generateKeyPairSync('ed25519')
      writeFileSync(join(work, `${name}.pem`), privateKey.export({ type: 'pkcs8', format: 'pem' }))
      writeFileSync(join(work, `${name}.pub.pem`), publicKey.export({ type: 'spki', format: 'pem' }))
    }
    for (const name of ['releaser', 'other']) pem(name)
    const folder = newFolder(t)
    const made = join(folder, 'lychgate')
    writeFileSync(made, 'content')
    const release = (key?: string) => {
      const enclosed = envelope(statement([made]), key && join(work, key))
      writeFileSync(join(folder, 'lychgate.intoto.json'), JSON.stringify(enclosed))
    }
    const verifyWith = (key: string) => {
      const args = ['scripts/release/verify.ts', '--key', join(work, key), folder]
      const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
      return { status, said: stdout + stderr }
    }
    release('releaser.pem')
    t.match(verifyWith('releaser.pub.pem'), {
      status: 0,
      said: /^1 files are as released, made from commit [0-9a-f]{40}/,
    })
    t.match(verifyWith('other.pub.pem'), { status: 1, said: 'the provenance is not signed by this key\n' })
    writeFileSync(join(folder, 'added'), '')
    t.match(verifyWith('releaser.pub.pem'), { status: 1, said: 'not as they were released: added\n' })
    writeFileSync(made, 'changed')
    t.match(verifyWith('releaser.pub.pem'), { status: 1, said: /released: .*lychgate/ })
    release()
    t.match(verifyWith('releaser.pub.pem'), { status: 1, said: 'the provenance is unsigned\n' })
  },
)

t.test('a program of Windows loses its signature, and nothing else', async (t) => {
  const [header, optional] = [64, 88]
  const program = Buffer.alloc(512, 7)
  program.writeUInt32LE(header, 0x3c)
  program.write('PE\0\0', header, 'latin1')
  program.writeUInt16LE(0x20b, optional)
  const directory = optional + 112 + 32
  program.writeUInt32LE(500, directory)
  program.writeUInt32LE(12, directory + 4)
  const unsigned = withoutSignature(program)
  t.equal(unsigned.length, 500)
  const changed = [...unsigned.keys()].filter((at) => unsigned[at] !== program[at])
  const within = (at: number, from: number, size: number) => at >= from && at < from + size
  t.ok(changed.length > 0)
  t.ok(changed.every((at) => within(at, directory, 8) || within(at, optional + 64, 4)))
  t.strictSame(withoutSignature(unsigned), unsigned)
  t.throws(() => withoutSignature(Buffer.concat([program, Buffer.alloc(1)])), /not at the end/)
  t.throws(() => withoutSignature(Buffer.alloc(512)), /no program/)
})
