// The official JavaScript SDK against a running server. Where that is, its own variables say.

import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { Sandbox, Volume } from 'e2b'
import { forgotten, watch } from './suite/seen.mjs'

watch('Sandbox', Sandbox)
watch('Sandbox', Object.getPrototypeOf(Sandbox), ['createSandbox', 'forkSandbox', 'connectSandbox'])
watch('sandbox', Sandbox.prototype, ['resolveApiOpts', 'fileUrl'])
watch('Volume', Volume)
watch('volume', Volume.prototype)
const sample = new Sandbox({ sandboxId: 'none', envdVersion: '0.6.13', apiKey: 'e2b_none' })
watch('commands', Object.getPrototypeOf(sample.commands), ['start', 'checkHealth'])
watch('files', Object.getPrototypeOf(sample.files), ['checkHealth'])
watch('pty', Object.getPrototypeOf(sample.pty), ['checkHealth'])
const inside = ['runGit', 'runShell', 'getRemoteUrl', 'resolveRemoteName', 'withRemoteCredentials', 'hasUpstream']
watch('git', Object.getPrototypeOf(sample.git), inside)

await import('./suite/lifecycle.mjs')
await import('./suite/commands.mjs')
await import('./suite/files.mjs')
await import('./suite/git.mjs')
await import('./suite/volumes.mjs')
await import('./suite/cli.mjs')

// Methods that other suites test.
const testedElsewhere = {
  'sandbox.getMcpToken': 'with the template mcp-gateway, by the Python suite',
}

describe('this suite', () => {
  it('has called every public method', () => {
    assert.deepEqual(forgotten().filter((label) => !(label in testedElsewhere)), [])
  })
})
