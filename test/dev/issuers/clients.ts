import { readFileSync } from 'node:fs'
import type { ClientUnderTest } from './client.ts'
import { mcpSdk } from './mcp-sdk.ts'
import { oauth4webapi } from './oauth4webapi.ts'
import { openidClient } from './openid-client.ts'

const [openid, web, mcp] = ['openid-client', 'oauth4webapi', '@modelcontextprotocol/sdk'].map(withVersion)

/** Every client in the documentation, by its name there. */
export const clients: readonly ClientUnderTest[] = [
  openidClient(`${openid}`, false),
  openidClient(`${openid}, enableNonRepudiationChecks`, true),
  oauth4webapi(`${web}`, false),
  oauth4webapi(`${web}, validateApplicationLevelSignature`, true),
  mcpSdk(`${mcp}`),
]

function withVersion(name: string): string {
  const url = new URL(`../../../node_modules/${name}/package.json`, import.meta.url)
  return `${name} ${JSON.parse(readFileSync(url, 'utf8')).version}`
}
