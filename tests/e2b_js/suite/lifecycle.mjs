import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { AuthenticationError, NotFoundError, Sandbox, SandboxNotFoundError } from 'e2b'
import { open, shared, until, withSandbox } from './test_env.mjs'

describe('a sandbox', () => {
  it('is made, found, asked about and killed', async () => {
    const metadata = { suite: `js ${Date.now()}` }
    const sandbox = await Sandbox.create({ metadata, timeoutMs: 600_000, envs: { A: 'b' } })
    assert.equal(await sandbox.isRunning(), true)
    const info = await sandbox.getInfo()
    assert.deepEqual([info.sandboxId, info.state, info.metadata], [sandbox.sandboxId, 'running', metadata])
    assert.equal(info.endAt - info.startedAt > 500_000, true)
    assert.equal((await Sandbox.getInfo(sandbox.sandboxId)).sandboxId, sandbox.sandboxId)
    assert.equal((await Sandbox.getFullInfo(sandbox.sandboxId)).sandboxId, sandbox.sandboxId)
    const listed = await Sandbox.list({ query: { metadata } }).nextItems()
    assert.deepEqual(listed.map((one) => one.sandboxId), [sandbox.sandboxId])
    assert.match(sandbox.getHost(3000), new RegExp(`^3000-${sandbox.sandboxId}\\.`))
    assert.match(sandbox.getMcpUrl(), /\/mcp$/)
    assert.equal(await sandbox.kill(), true)
    assert.equal(await Sandbox.kill(sandbox.sandboxId), false)
    assert.equal(await sandbox.isRunning(), false)
    await assert.rejects(sandbox.getInfo(), SandboxNotFoundError)
    await assert.rejects(Sandbox.connect(sandbox.sandboxId), SandboxNotFoundError)
  })

  it('gets more time and ends in time', async () => {
    await withSandbox(async (sandbox) => {
      const { endAt } = await sandbox.getInfo()
      await sandbox.setTimeout(2_400_000)
      assert.equal((await sandbox.getInfo()).endAt > endAt, true)
      await Sandbox.setTimeout(sandbox.sandboxId, 0)
      await until('it is gone', () => Sandbox.getInfo(sandbox.sandboxId).then(() => false, () => true))
    })
  })

  it('is paused with its memory and comes back', async () => {
    await withSandbox(async (sandbox) => {
      const counter = await sandbox.commands.run('sleep 600', { background: true, timeoutMs: 0 })
      const bootId = await sandbox.files.read('/proc/sys/kernel/random/boot_id')
      assert.equal(await sandbox.pause(), true)
      assert.equal(await sandbox.pause(), false)
      assert.equal((await sandbox.getInfo()).state, 'paused')
      await sandbox.connect({ timeoutMs: 1_200_000 })
      assert((await sandbox.commands.list()).some((one) => one.pid === counter.pid))
      assert.equal(await sandbox.files.read('/proc/sys/kernel/random/boot_id'), bootId)
      assert.equal(await Sandbox.pause(sandbox.sandboxId), true)
      const other = await Sandbox.connect(sandbox.sandboxId)
      assert.equal((await other.commands.run('echo back')).stdout, 'back\n')
      assert.equal(await sandbox.betaPause(), true)
      await sandbox.connect()
      assert.equal(await Sandbox.betaPause(sandbox.sandboxId), true)
    })
  })

  it('is paused when its time is over, and woken by a request', async () => {
    const lifecycle = { onTimeout: 'pause', autoResume: true }
    await withSandbox(async (sandbox) => {
      await sandbox.files.write('kept', 'kept')
      await sandbox.setTimeout(0)
      await until('it is paused', async () => (await sandbox.getInfo()).state === 'paused')
      assert.equal(await sandbox.files.read('kept'), 'kept')
      assert.equal((await sandbox.getInfo()).state, 'running')
    }, { lifecycle })
  })

  it('tells what it uses', async () => {
    await withSandbox(async (sandbox) => {
      const metrics = await until('there is a point', async () => {
        const points = await sandbox.getMetrics()
        return points.length > 0 && points
      })
      assert(metrics[0].memTotal > 0 && metrics[0].diskTotal > 0 && metrics[0].cpuCount > 0)
      assert((await Sandbox.getMetrics(sandbox.sandboxId)).length > 0)
    })
  })

  it('is kept as a snapshot and made from it', async () => {
    await withSandbox(async (sandbox) => {
      await sandbox.files.write('state', 'kept')
      const first = await sandbox.createSnapshot({ name: `js-${Date.now()}` })
      const second = await Sandbox.createSnapshot(sandbox.sandboxId)
      const own = await sandbox.listSnapshots().nextItems()
      assert.deepEqual(own.map((one) => one.snapshotId).sort(), [first.snapshotId, second.snapshotId].sort())
      assert((await Sandbox.listSnapshots().nextItems()).length >= 2)
      await withSandbox(async (copy) => {
        assert.equal(await copy.files.read('state'), 'kept')
      }, {}, first.snapshotId)
      for (const one of own) assert.equal(await Sandbox.deleteSnapshot(one.snapshotId), true)
      assert.equal(await Sandbox.deleteSnapshot(first.snapshotId), false)
    })
  })

  it('is forked', async () => {
    await withSandbox(async (sandbox) => {
      await sandbox.files.write('state', 'forked')
      // Unless more is asked for, they live 15 seconds.
      const timeoutMs = 600_000
      const forks = [...(await sandbox.fork({ count: 2, timeoutMs })), ...(await Sandbox.fork(sandbox.sandboxId, { timeoutMs }))]
      assert.equal(forks.length, 3)
      for (const fork of forks) {
        assert(fork instanceof Sandbox, `${fork}`)
        assert.equal(await fork.files.read('state'), 'forked')
        await fork.kill()
      }
    })
  })

  it('reaches what it may and nothing else', async () => {
    await withSandbox(async (sandbox) => {
      const info = await sandbox.getInfo()
      assert.deepEqual(info.network?.allowOut, ['192.0.2.1'])
      await sandbox.updateNetwork({ denyOut: ['192.0.2.0/24'] })
      assert.deepEqual((await sandbox.getInfo()).network?.denyOut, ['192.0.2.0/24'])
      await Sandbox.updateNetwork(sandbox.sandboxId, { allowOut: ['example.com'] })
      assert.deepEqual((await sandbox.getInfo()).network?.allowOut, ['example.com'])
    }, { network: { allowOut: ['192.0.2.1'], denyOut: ['0.0.0.0/0'] } })
  })
})

describe('failures', () => {
  it('are told by the right errors', async () => {
    await assert.rejects(Sandbox.create({ apiKey: `e2b_${'0'.repeat(40)}` }), AuthenticationError)
    await assert.rejects(Sandbox.create('no-such-template'), (error) => /no-such-template/.test(error.message))
    await assert.rejects(Sandbox.getInfo('nosuchsandbox'), NotFoundError)
  })
})

describe('ports', () => {
  const env = shared()

  it('open by their host', async () => {
    const { sandbox } = env
    await sandbox.files.write('index.html', 'hello from inside')
    await sandbox.commands.run('python3 -m http.server 3000', { background: true, timeoutMs: 0 })
    const page = await until('the server answers', async () => {
      const answer = await open(sandbox.getHost(3000), '/index.html')
      return answer.status === 200 && answer
    })
    assert.equal(page.text, 'hello from inside')
    const closed = await open(sandbox.getHost(4000), '/')
    assert.equal(closed.status, 502)
    assert.equal(JSON.parse(closed.text).message, 'The sandbox is running but port is not open')
  })
})
