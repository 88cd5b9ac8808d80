/** The settings of VitePress; site.ts runs it in the checkout. */
import { siteOf, slugify } from '../pages.ts'

// biome-ignore lint/style/noDefaultExport: VitePress reads the default export.
export default {
  srcDir: '../../dist/site-source',
  outDir: '../../dist/site',
  cacheDir: '../../dist/site-cache',
  title: 'Lychgate',
  description: 'An OAuth 2.0 and OpenID Connect server, written by hand from the RFCs and meant to be read.',
  lang: 'en',
  // check.ts checks every link; this one would take examples on localhost for dead ones.
  ignoreDeadLinks: true,
  markdown: {
    anchor: { slugify },
    toc: { slugify },
    headers: { slugify },
    languageAlias: { caddyfile: 'nginx', eta: 'html', svg: 'xml' },
  },
  themeConfig: {
    sidebar: siteOf(process.cwd()).groups,
    outline: { level: [2, 3] },
    search: { provider: 'local' },
    docFooter: { prev: false, next: false },
  },
}
