import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chownSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** One temporary folder that contains everything that runs. */
export interface Folder {
  readonly path: string
  /** Creates a folder below it for the programs, and returns its path. */
  add(name: string): string
  /** Starts a program in this folder or one below; its output goes to `<name>.log`. */
  start(name: string, command: readonly string[], options?: Surroundings): ChildProcess
  /** The same, to its end. */
  run(name: string, command: readonly string[], options?: Surroundings): Promise<void>
  /** The output of a program, line by line. */
  words(name: string): readonly string[]
  /** Ends every process that runs in the folder, and deletes it. */
  remove(): Promise<void>
}

interface Surroundings {
  /** The folder it runs in; this one by default. */
  readonly cwd?: string
  /** All of its variables. */
  readonly environment?: Readonly<Record<string, string>>
  /** Whether it runs as the current user; otherwise root's programs run as `nobody`. */
  readonly asStarter?: boolean
}

/** Deletes the folder, and outlives its creator: it waits for the end of its input, which comes with any end. */
const reaper = `trap '' INT TERM HUP
cat > /dev/null
while running=$(find /proc/[0-9]*/cwd -lname "$1*" 2> /dev/null | cut -d / -f 3) && [ -n "$running" ]; do
  kill -KILL $running 2> /dev/null
  sleep 0.1
done
for file in $(find "$1" -name postmaster.pid); do ipcrm -m $(awk 'NR == 7 { print $2 }' "$file"); done
rm -rf "$1"`

/** Creates the folder, which is deleted with this process, even if this process is killed. */
export function makeFolder(): Folder {
  const path = mkdtempSync(join(tmpdir(), 'lychgate-cluster-'))
  const end = spawn('sh', ['-c', reaper, 'sh', path], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  const ended = new Promise<void>((resolve) => end.once('exit', () => resolve()))
  const user = process.getuid?.() === 0 ? idsOf('nobody') : undefined
  if (user !== undefined) chownSync(path, ...user)
  let isOver = false
  const logOf = (name: string) => join(path, `${name}.log`)

  function start(
    name: string,
    command: readonly string[],
    { cwd = path, environment = {}, asStarter = false }: Surroundings = {},
  ) {
    if (isOver) throw new Error('everything is being ended')
    const log = openSync(logOf(name), 'a')
    const variables = Object.entries({ PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: path, ...environment })
    // None of the surrounding variables may reach them.
    const args = ['-i', ...variables.map((pair) => pair.join('=')), ...command]
    const as = user !== undefined && !asStarter ? { uid: user[0], gid: user[1] } : {}
    return spawn('env', args, { cwd, stdio: ['ignore', log, log], ...as })
  }

  function words(name: string): readonly string[] {
    return readFileSync(logOf(name), 'utf8').trimEnd().split('\n')
  }

  return {
    path,
    add: (name) => {
      const added = join(path, name)
      mkdirSync(added, { mode: 0o700 })
      if (user !== undefined) chownSync(added, ...user)
      return added
    },
    start,
    run: async (name, command, options) => {
      const child = start(name, command, options)
      const code = await new Promise((resolve, reject) => child.once('exit', resolve).once('error', reject))
      if (code !== 0) throw new Error(`${name} ended with ${code}:\n${words(name).slice(-15).join('\n')}`)
    },
    words,
    remove: async () => {
      isOver = true
      end.stdin.end()
      await ended
    },
  }
}

function idsOf(user: string): [uid: number, gid: number] {
  const [uid, gid] = ['-u', '-g'].map((flag) =>
    Number(spawnSync('id', [flag, user], { encoding: 'utf8' }).stdout),
  )
  if (!uid || !gid) throw new Error(`there is no user ${user} on this machine`)
  return [uid, gid]
}

/** The processes that run in this folder or one below it. */
export function processesIn(folder: string): readonly number[] {
  const isInside = (pid: string) => {
    try {
      return `${readlinkSync(`/proc/${pid}/cwd`)}/`.startsWith(`${folder}/`)
    } catch {
      // It ended in the meantime, or belongs to another user.
      return false
    }
  }
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && isInside(name))
    .map(Number)
}
