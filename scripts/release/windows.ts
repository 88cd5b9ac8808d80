/** The executable for 64-bit Windows, made on Linux. Nothing here can start it. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildExecutable } from '../build/executable.ts'
import { unpackNode } from './node-package.ts'

/** Builds it with the Node of the lockfile for that platform. */
export async function buildWindows(file: string): Promise<void> {
  const work = mkdtempSync(join(tmpdir(), 'lychgate-windows-'))
  try {
    const node = join(unpackNode(work, 'win-x64'), 'bin/node.exe')
    writeFileSync(node, withoutSignature(readFileSync(node)))
    // Node for Windows has its symbols in another file.
    await buildExecutable(file, { platform: 'win32-x64', node, strip: [] })
  } finally {
    rmSync(work, { recursive: true })
  }
}

/**
 * Removes the signature (Authenticode) of a program of Windows. It is of Node alone, and Windows shows a file that was
 * changed after it was signed as damaged.
 */
export function withoutSignature(program: Buffer): Buffer {
  const header = program.readUInt32LE(0x3c)
  const optional = header + 24
  if (program.toString('latin1', header, header + 4) !== 'PE\0\0' || program.readUInt16LE(optional) !== 0x20b)
    throw new Error('this is no program of 64-bit Windows')
  // The fifth data directory: where the signature begins, and its size. It is the end of the file.
  const directory = optional + 112 + 4 * 8
  const [begin, size] = [program.readUInt32LE(directory), program.readUInt32LE(directory + 4)]
  if (size === 0) return program
  if (begin + size !== program.length) throw new Error('the signature is not at the end of the program')
  const unsigned = Buffer.from(program.subarray(0, begin))
  // With it goes the checksum, which Windows does not read of programs.
  unsigned.writeUInt32LE(0, optional + 64)
  unsigned.fill(0, directory, directory + 8)
  return unsigned
}
