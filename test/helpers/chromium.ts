import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import chromium, { inflate } from '@sparticuz/chromium'
import { type Browser, chromium as playwright } from 'playwright-core'

const packageFolder = join(dirname(fileURLToPath(import.meta.resolve('@sparticuz/chromium'))), '..')

/** The package's own names folders of other machines. */
const fontConfiguration = '<fontconfig><dir prefix="relative">fonts</dir></fontconfig>\n'

/**
 * A real Chromium from npm alone: the program, the libraries it links (NSS and NSPR among them) and its fonts, so that
 * it is the same on every machine.
 * @param args Further arguments of Chromium.
 */
export async function launchBrowser(...args: readonly string[]): Promise<Browser> {
  const started = await chromiumOf()
  return playwright.launch({
    executablePath: started.executablePath,
    env: { ...process.env, ...started.env },
    args: [...started.args, ...args],
  })
}

/** How that Chromium is started. */
export async function chromiumOf() {
  const folder = await unpacked()
  return {
    executablePath: join(folder, 'chromium'),
    env: {
      LD_LIBRARY_PATH: join(folder, 'al2023', 'lib'),
      FONTCONFIG_FILE: join(folder, 'fonts.conf'),
    },
    // Not the package's own list of arguments: it disables web security, and the policies with it.
    args: ['--no-sandbox', '--headless=shell', '--use-gl=angle', '--use-angle=swiftshader'],
  }
}

/**
 * The folder Chromium is unpacked to, once per version. The package unpacks in place, and a second process could start
 * a half-written program: so each process unpacks to its own folder, and the first to finish wins.
 */
async function unpacked(): Promise<string> {
  const { version } = JSON.parse(readFileSync(join(packageFolder, 'package.json'), 'utf8'))
  const cache = join(packageFolder, '..', '..', '.cache')
  const folder = join(cache, `chromium-${version}`)
  if (existsSync(folder)) return folder
  mkdirSync(cache, { recursive: true })
  const own = mkdtempSync(join(cache, 'chromium-'))
  const { TMPDIR: before } = process.env
  try {
    // The package unpacks to the folder for temporary files, wherever that is now.
    process.env['TMPDIR'] = own
    await chromium.executablePath()
    await inflate(join(packageFolder, 'bin', 'al2023.tar.br'))
    writeFileSync(join(own, 'fonts.conf'), fontConfiguration)
    renameSync(own, folder)
  } catch (error) {
    if (!existsSync(folder)) throw error
  } finally {
    if (before === undefined) delete process.env['TMPDIR']
    else process.env['TMPDIR'] = before
    rmSync(own, { recursive: true, force: true })
  }
  return folder
}
