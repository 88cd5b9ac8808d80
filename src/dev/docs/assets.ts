import { gunzipSync } from 'node:zlib'
import { hasAsset, readAsset } from '../../assets.ts'

/** The files of Swagger UI that the page needs. */
export const docsAssets = ['swagger-ui.css', 'swagger-ui-bundle.js', 'oauth2-redirect.js'] as const

/** A file of Swagger UI: from its package in a checkout; the builds bring it along, compressed. */
export function readDocsAsset(name: (typeof docsAssets)[number]): Buffer {
  const installed = `node_modules/@fastify/swagger-ui/static/${name}`
  return hasAsset(installed) ? readAsset(installed) : gunzipSync(readAsset(`dist/docs/${name}.gz`))
}

/** An image of the stylesheet. */
export interface Image {
  readonly type: string
  readonly body: Buffer
}

const embedded =
  /url\((?:"data:(image\/[a-z+]+);charset=utf-8,((?:[^"\\]|\\.)*)"|data:(image\/[a-z+]+);base64,([\w+/=]+))\)/g

/**
 * The stylesheet with a URL in place of each image it embeds, and the images in the order of these URLs: the policy of
 * the pages allows no `data:` images.
 * @param urlOf The URL of an image by its number.
 */
export function separateImages(
  css: string,
  urlOf: (number: number) => string,
): { readonly css: string; readonly images: readonly Image[] } {
  const images: Image[] = []
  const separate = (
    _: string,
    textType: string | undefined,
    text: string | undefined,
    type: string | undefined,
    base64 = '',
  ) => {
    const body =
      text === undefined
        ? Buffer.from(base64, 'base64')
        : Buffer.from(decodeURIComponent(text.replaceAll(/\\(.)/g, '$1')))
    images.push({ type: textType ?? type ?? '', body })
    return `url("${urlOf(images.length - 1)}")`
  }
  return { css: css.replaceAll(embedded, separate), images }
}
