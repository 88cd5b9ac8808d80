import Fastify, { type FastifyInstance } from 'fastify'
import { pages } from '../../../src/pages/pages.ts'
import type { Sample } from './pages.ts'

/** The service whose name the samples show. */
export const sampleConfig: Parameters<typeof pages>[1]['config'] = {
  issuer: 'https://id.riverside.example',
  texts: {},
  service: {
    name: 'Riverside School',
    language: 'en',
    logoName: 'beside',
    documentation: 'https://docs.riverside.example/api',
    policy: 'https://riverside.example/privacy',
    terms: 'https://riverside.example/terms',
  },
}

/** A bare Fastify with the pages, and one route per sample. */
export async function buildSamples(
  samples: Readonly<Record<string, Sample>>,
  prefix = '',
  config = sampleConfig,
): Promise<FastifyInstance> {
  const app = Fastify()
  await app.register(pages, { config, prefix })
  for (const [name, { page, model }] of Object.entries(samples))
    app.get(`/${name}`, async (_request, reply) => reply.page(page, model))
  return app
}

/** A start tag. */
export interface Element {
  readonly name: string
  readonly attributes: ReadonlyMap<string, string>
}

/** The start tags of a document; anything else that begins with `<` must be an end tag, so none is missed. */
export function parseElements(text: string): readonly Element[] {
  const elements: Element[] = []
  const rest = text
    .replace('<!doctype html>', '')
    .replaceAll(
      /<([a-z][a-z0-9]*)((?:\s+[^\s"'<>=/]+(?:="[^"<>]*")?)*)\s*\/?>/g,
      (_tag, name, attributes) => {
        const pairs = [...String(attributes).matchAll(/([^\s"'<>=/]+)(?:="([^"]*)")?/g)]
        elements.push({
          name,
          attributes: new Map(pairs.map(([, key, value]) => [String(key), decodeEntities(value ?? '')])),
        })
        return ''
      },
    )
    .replaceAll(/<\/[a-z][a-z0-9]*>/g, '')
  if (/[<>]/.test(rest)) throw new Error(`markup that is no tag: ${rest.match(/.{0,40}[<>].{0,40}/)?.[0]}`)
  return elements
}

/** Undoes HTML escaping. */
export function decodeEntities(text: string): string {
  return text
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')
}

/** The visible text. */
export function textOf(document: string): string {
  return decodeEntities(document.replaceAll(/<[^>]*>/g, '')).replaceAll(/\s+/g, ' ')
}
