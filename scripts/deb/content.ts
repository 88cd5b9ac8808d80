/** The files of the Debian package, in the layout of `/`, and the scripts that dpkg runs. */
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { commandLine } from '../../src/main.ts'
import { root } from '../build/bundle.ts'
import { billOfMaterials } from '../build/sbom.ts'
import { manualPages } from './manual.ts'

/** What is packed. */
export interface Packed {
  /** The checkout that the executable is built from. */
  readonly sources: string
  readonly executable: string
  /** In the form of Debian. */
  readonly version: string
  /** Debian's name of the architecture. */
  readonly architecture: string
  /** The driver for this architecture. */
  readonly driver: string
  readonly instant: number
}

/** Writes the files, and the folder DEBIAN next to them. Their modes are installed, so no umask of a builder counts. */
export async function writePackage(folder: string, packed: Packed): Promise<void> {
  const umask = process.umask(0o022)
  try {
    await writeFiles(folder, packed)
  } finally {
    process.umask(umask)
  }
}

async function writeFiles(folder: string, packed: Packed): Promise<void> {
  const write = (path: string, content: string | Uint8Array, mode = 0o644) => {
    const file = join(folder, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, content, { mode })
  }
  write('usr/bin/lychgate', '')
  cpSync(packed.executable, join(folder, 'usr/bin/lychgate'))
  write('usr/lib/lychgate/better_sqlite3.node', readFileSync(packed.driver))
  write('usr/lib/systemd/system/lychgate.service', unitOfPackage(packed.sources))
  write('usr/lib/sysusers.d/lychgate.conf', 'u lychgate - "Lychgate" /var/lib/lychgate\n')
  write('usr/lib/tmpfiles.d/lychgate.conf', 'd /var/lib/lychgate 0700 lychgate lychgate\n')
  const configuration = join(packed.sources, 'deploy/lychgate.yaml')
  // The first versions had none.
  const isConfigured = existsSync(configuration)
  if (isConfigured) write('etc/lychgate/lychgate.yaml', readFileSync(configuration))
  write('etc/lychgate/env', environmentFile)
  const documents = 'usr/share/doc/lychgate'
  write(`${documents}/copyright`, readFileSync(`${root}LICENSE`))
  write(`${documents}/licences.txt.gz`, gzipSync(readFileSync(`${packed.executable}.licences.txt`)))
  write(`${documents}/CHANGELOG.md.gz`, gzipSync(readFileSync(`${root}CHANGELOG.md`)))
  write(`${documents}/sbom.cdx.json`, billOfMaterials())
  for (const [name, text] of Object.entries(manualPages(await commandLine(), packed)))
    write(`usr/share/man/man1/${name}.gz`, gzipSync(text))
  for (const [shell, path] of Object.entries(completions)) {
    write(
      `usr/share/${path}`,
      execFileSync(process.execPath, [`${root}src/lychgate.js`, 'completion', shell]),
    )
  }
  write('DEBIAN/control', control(packed))
  write('DEBIAN/conffiles', `${isConfigured ? '/etc/lychgate/lychgate.yaml\n' : ''}/etc/lychgate/env\n`)
  for (const [name, script] of Object.entries(scripts))
    write(`DEBIAN/${name}`, `#!/bin/sh\nset -e\n${script}`, 0o755)
}

/** Where each shell looks for completions. */
const completions = {
  bash: 'bash-completion/completions/lychgate',
  zsh: 'zsh/vendor-completions/_lychgate',
  fish: 'fish/vendor_completions.d/lychgate.fish',
}

const environmentFile = `# Options of the server, one variable a line: lychgate config print shows all of them.
# The public URL, which clients compare character by character.
#LYCHGATE_ISSUER=https://auth.example.org
`

/** deploy/lychgate.service with the paths of the package, and a user that stays in place of one for each start. */
function unitOfPackage(sources: string): string {
  const unit = readFileSync(join(sources, 'deploy/lychgate.service'), 'utf8')
  const [, body = ''] = unit.split(/^(?=\[Unit\]$)/m)
  const changes = [
    ['ExecStart=/usr/local/bin/lychgate', 'ExecStart=/usr/bin/lychgate'],
    ['DynamicUser=yes\nUser=lychgate\n', 'User=lychgate\nGroup=lychgate\n'],
  ] as const
  return changes.reduce((text, [from, to]) => {
    if (!text.includes(from)) throw new Error(`deploy/lychgate.service has no ${from}`)
    return text.replace(from, to)
  }, `# Options are in /etc/lychgate: env, lychgate.yaml and secret, which the installation makes.\n\n${body}`)
}

function control({ version, architecture }: Packed): string {
  return `Package: lychgate
Version: ${version}
Architecture: ${architecture}
Maintainer: The Lychgate authors <maintainers@lychgate.invalid>
Section: net
Priority: optional
Depends: libc6 (>= 2.28), libstdc++6, systemd (>= 250)
Description: OAuth 2.0 and OpenID Connect server
 An authorization server with its pages, its database and its command line in
 one executable. Set LYCHGATE_ISSUER in /etc/lychgate/env, then start it with
 systemctl enable --now lychgate.
`
}

/** Only a machine that systemd runs has services to reload. */
const whereSystemdRuns = 'if [ -d /run/systemd/system ]; then'

const scripts = {
  postinst: `if [ "$1" = configure ]; then
  systemd-sysusers lychgate.conf
  systemd-tmpfiles --create lychgate.conf
  if [ ! -e /etc/lychgate/secret ]; then
    (umask 077 && /usr/bin/lychgate keys secret > /etc/lychgate/secret)
  fi
  ${whereSystemdRuns}
    systemctl daemon-reload
    systemctl try-restart lychgate.service
  fi
fi
`,
  prerm: `if [ "$1" = remove ]; then
  ${whereSystemdRuns}
    systemctl disable --now lychgate.service
  fi
fi
`,
  // The secret opens the keys of the data: one is of no use without the other.
  postrm: `if [ "$1" = purge ]; then
  rm -rf /var/lib/lychgate
  rm -f /etc/lychgate/secret
  rmdir --ignore-fail-on-non-empty /etc/lychgate 2> /dev/null || true
fi
${whereSystemdRuns}
  systemctl daemon-reload
fi
`,
}
