import { formatCurl } from '../flows/curl.ts'
import type { Flow } from '../flows/flow.ts'
import { formatHar } from '../flows/har.ts'
import type { ReportedProfile } from './report.ts'

/** What a test of a client is made from: what the issuer does wrong, and how the client is run. */
interface TestSubject extends Pick<ReportedProfile, 'id' | 'title' | 'clause' | 'sound' | 'evidence'> {
  /** A command of the shell, which finds its issuer in the variable ISSUER. */
  readonly command: string
}

/**
 * Makes files of what a client did at a misbehaving issuer, by name: its flow as HAR and as curl lines, and tests that
 * fail for as long as the client is fooled.
 */
export function filesOfFlow(
  flow: Flow,
  profile: ReportedProfile,
  command: string,
): Readonly<Record<string, string>> {
  const { id, issuer } = profile
  const { origin } = new URL(issuer)
  return {
    [`${id}.har`]: `${JSON.stringify(formatHar(flow, origin), undefined, 2)}\n`,
    [`${id}.sh`]: formatCurl(flow, origin),
    [`${id}.test.mjs`]: nodeTest({ ...profile, command }),
    [`test_${pythonName(id)}.py`]: pythonTest({ ...profile, command }),
  }
}

/**
 * Makes a test of the client for `node:test`. It starts a development server, runs the client at the issuer that
 * behaves and at the one that does not, and asks what the client did: it fails for as long as the client is fooled.
 */
function nodeTest(subject: TestSubject): string {
  return `${headOf(subject, '//')}
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import test from 'node:test'
import { start } from 'lychgate/dev'

const id = ${JSON.stringify(subject.id)}
const command = process.env.CLIENT ?? ${JSON.stringify(subject.command)}

test(${JSON.stringify(`the client is not fooled by ${subject.id}`)}, async () => {
  const server = await start({ config: { dev: { autoSignIn: 'alice', autoConsent: 'on' } } })
  try {
    for (const name of ['reference', id]) {
      const env = { ...process.env, ISSUER: \`\${server.issuer}/_dev/issuers/\${name}\` }
      await once(spawn(command, { shell: true, stdio: 'inherit', env }), 'exit')
    }
    const { profiles } = await (await fetch(\`\${server.issuer}/_dev/issuers/report\`)).json()
    const [reference, broken] = ['reference', id].map((name) => profiles.find((profile) => profile.id === name))
    assert.equal(reference.verdict, 'passed', 'the client works at an issuer that behaves')
    assert.equal(broken.verdict, 'rejected', \`\${broken.title}, and then: \${broken.evidence ?? broken.next}\`)
  } finally {
    await server.stop()
  }
})
`
}

/** Makes the same test for pytest. It runs the command \`lychgate\`. */
function pythonTest(subject: TestSubject): string {
  return `${headOf(subject, '#')}
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request

ID = ${JSON.stringify(subject.id)}
COMMAND = os.environ.get("CLIENT", ${JSON.stringify(subject.command)})
LYCHGATE = os.environ.get("LYCHGATE", "npx lychgate")


def read(url):
    with urllib.request.urlopen(url) as response:
        return json.load(response)


def wait_for(url):
    for _ in range(300):
        try:
            return read(url)
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(url)


def test_${pythonName(subject.id)}():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    issuer = f"http://localhost:{port}"
    options = {"RATE_LIMITS": "off", "DEV_AUTO_SIGN_IN": "alice", "DEV_AUTO_CONSENT": "on"}
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "LYCHGATE_DATA": folder, **{f"LYCHGATE_{name}": value for name, value in options.items()}}
        command = f"{LYCHGATE} dev --port {port}"
        server = subprocess.Popen(command, shell=True, env=env, start_new_session=True)
        try:
            wait_for(f"{issuer}/readyz")
            for name in ("reference", ID):
                own = {**os.environ, "ISSUER": f"{issuer}/_dev/issuers/{name}"}
                subprocess.run(COMMAND, shell=True, env=own, timeout=120)
            profiles = {profile["id"]: profile for profile in read(f"{issuer}/_dev/issuers/report")["profiles"]}
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait()
    assert profiles["reference"]["verdict"] == "passed", "the client works at an issuer that behaves"
    broken = profiles[ID]
    assert broken["verdict"] == "rejected", f'{broken["title"]}, and then: {broken.get("evidence", broken["next"])}'
`
}

function pythonName(id: string): string {
  return id.replaceAll(/\W/g, '_')
}

function headOf({ title, clause, sound, evidence }: TestSubject, sign: string): string {
  return [
    `${title} (${clause}).`,
    `A sound client ${sound}.`,
    ...(evidence === undefined ? [] : [`The client that was recorded did not: ${evidence}`]),
    'Made by lychgate dev record. ISSUER is the issuer at which the client is to sign in a user; no page is shown.',
  ]
    .map((line) => `${sign} ${line}`)
    .join('\n')
}
