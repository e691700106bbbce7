import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Sandbox } from 'e2b'
import { shared } from './test_env.mjs'

const program = fileURLToPath(new URL('../node_modules/@e2b/cli/dist/index.js', import.meta.url))

describe("E2B's command line", () => {
  const env = shared({})
  let home
  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'e2b-cli-'))
  })
  after(() => rm(home, { recursive: true }))

  const cli = async (...args) => {
    const options = { env: { ...process.env, HOME: home, NODE_NO_WARNINGS: '1' } }
    return (await promisify(execFile)(process.execPath, [program, ...args], options)).stdout
  }

  it('lists sandboxes and prints their log', async () => {
    const id = env.sandbox.sandboxId
    assert.match(await cli('sandbox', 'list'), new RegExp(id))
    assert.match(await cli('sandbox', 'logs', id), /INFO .*created by/)
    const lines = (await cli('sandbox', 'logs', id, '--format', 'json')).trim().split('\n')
    for (const line of lines) {
      const { level, logger, message } = JSON.parse(line)
      assert(level && logger && message, line)
    }
  })

  it('publishes and unpublishes a snapshot', async () => {
    const { snapshotId } = await env.sandbox.createSnapshot()
    const access = async () => (await cli('template', 'list')).split('\n').find((line) => line.includes(snapshotId.split(':')[0]))
    assert.match(await access(), /^Private/)
    await cli('template', 'publish', '--yes', snapshotId)
    assert.match(await access(), /^Public/)
    await cli('template', 'unpublish', '--yes', snapshotId)
    assert.match(await access(), /^Private/)
    await Sandbox.deleteSnapshot(snapshotId)
  })
})
