/** A document that is known before any user approves its client, and where it is known from. */
interface KnownDocument {
  readonly url: string
  readonly app: string
  /** The page of its vendor that names it. */
  readonly source: string
}

/** The documents that a new server accepts. docs/agents.md lists them; a test compares both. */
export const knownDocuments: readonly KnownDocument[] = [
  {
    url: 'https://claude.ai/oauth/mcp-oauth-client-metadata',
    app: 'Claude',
    source: 'https://claude.com/docs/connectors/building/authentication',
  },
  {
    url: 'https://claude.ai/oauth/claude-code-client-metadata',
    app: 'Claude Code',
    source: 'https://claude.com/docs/connectors/building/authentication',
  },
  {
    url: 'https://chatgpt.com/oauth/client.json',
    app: 'ChatGPT',
    source: 'https://developers.openai.com/plugins/build/auth',
  },
  {
    url: 'https://chatgpt.com/oauth/codex/client.json',
    app: 'Codex',
    source: 'https://developers.openai.com/plugins/build/auth',
  },
  {
    url: 'https://vscode.dev/oauth/client-metadata.json',
    app: 'VS Code',
    source: 'https://code.visualstudio.com/api/extension-guides/ai/mcp',
  },
]
