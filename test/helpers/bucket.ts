/** A server that stores objects by the protocol of S3, and computes each signature by itself (AWS Signature Version 4). */
import { createHash, createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import type { Test } from 'tap'

export const bucketKeys = { accessKey: 'AKIAEXAMPLE', secretKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' }
const region = 'eu-central-1'
const keysPerPage = 2

/** Starts the server; `objects` holds what it stores, by `/BUCKET/KEY`. */
export async function startBucketServer(t: Test) {
  const objects = new Map<string, Buffer>()
  const fault = {
    /** Cuts each download after its first bytes, as a lost connection does. */
    isCutting: false,
    /** Replaces an object in spite of `If-None-Match`, as older servers do. */
    isUnconditional: false,
    /** Has the object of another after it said that there is none. */
    isRacing: false,
  }
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? '', 'http://bucket')
    const body = await buffer(request)
    const reject = (status: number, code: string) =>
      response.writeHead(status).end(`<?xml version="1.0"?><Error><Code>${code}</Code></Error>`)
    if (!isSigned(request, url, body)) return reject(403, 'SignatureDoesNotMatch')
    const { pathname } = url
    const object = objects.get(pathname)
    if (request.method === 'PUT') {
      if (object !== undefined && !fault.isUnconditional && request.headers['if-none-match'] === '*')
        return reject(412, 'PreconditionFailed')
      objects.set(pathname, body)
      return response.end()
    }
    if (request.method === 'DELETE') {
      objects.delete(pathname)
      return response.writeHead(204).end()
    }
    if (url.searchParams.get('list-type') === '2') return response.end(listing(url))
    if (object === undefined) {
      if (fault.isRacing) objects.set(pathname, Buffer.from('of another'))
      return reject(404, 'NoSuchKey')
    }
    if (fault.isCutting) {
      response.writeHead(200, { 'content-length': object.length }).write(object.subarray(0, 1000))
      return setImmediate(() => response.destroy())
    }
    return response.end(object)
  })
  const listing = ({ pathname, searchParams }: URL) => {
    const [prefix, after] = [searchParams.get('prefix') ?? '', searchParams.get('start-after') ?? '']
    const keys = [...objects.keys()]
      .filter((path) => path.startsWith(pathname))
      .map((path) => path.slice(pathname.length))
      .filter((key) => key.startsWith(prefix) && key > after)
      .toSorted()
    const page = keys.slice(0, keysPerPage).map((key) => `<Contents><Key>${key}</Key></Contents>`)
    return `<ListBucketResult><IsTruncated>${keys.length > keysPerPage}</IsTruncated>${page.join('')}</ListBucketResult>`
  }
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const environment = {
    LYCHGATE_BACKUP_ENDPOINT: endpoint,
    LYCHGATE_BACKUP_REGION: region,
    LYCHGATE_BACKUP_ACCESS_KEY: bucketKeys.accessKey,
    LYCHGATE_BACKUP_SECRET_KEY: bucketKeys.secretKey,
  }
  return { endpoint, environment, objects, fault }
}

/** Whether the request was signed with the keys of this server, and the body is the one that was signed. */
function isSigned({ method = '', headers }: IncomingMessage, url: URL, body: Buffer): boolean {
  const form =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, SignedHeaders=([\w;-]+), Signature=(\w{64})$/
  const [, key, day = '', signedRegion, names = '', signature] = form.exec(headers.authorization ?? '') ?? []
  if (key !== bucketKeys.accessKey || signedRegion !== region) return false
  const digest = headers['x-amz-content-sha256']
  if (digest !== sha256(body)) return false
  const query = [...url.searchParams]
    .map((pair) => pair.map(encodeURIComponent).join('='))
    .toSorted()
    .join('&')
  const lines = names.split(';').map((name) => `${name}:${headers[name]}\n`)
  const request = [method, url.pathname, query, lines.join(''), names, digest].join('\n')
  const scope = `${day}/${region}/s3/aws4_request`
  const text = ['AWS4-HMAC-SHA256', headers['x-amz-date'], scope, sha256(request)].join('\n')
  const signingKey = [day, region, 's3', 'aws4_request'].reduce(
    (secret: string | Buffer, part) => createHmac('sha256', secret).update(part).digest(),
    `AWS4${bucketKeys.secretKey}`,
  )
  return createHmac('sha256', signingKey).update(text).digest('hex') === signature
}

function sha256(data: string | Buffer): string {
  return createHash('sha256').update(data).digest('hex')
}
