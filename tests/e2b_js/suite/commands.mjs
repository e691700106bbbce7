import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { CommandExitError, NotFoundError, TimeoutError } from 'e2b'
import { shared, until } from './test_env.mjs'

describe('commands', () => {
  const env = shared({ envs: { COLOUR: 'red' } })

  it('run and tell what they wrote', async () => {
    const seen = []
    const done = await env.sandbox.commands.run('echo $COLOUR $SIZE; pwd; echo oops >&2', {
      cwd: '/tmp',
      envs: { SIZE: 'large' },
      onStdout: (text) => seen.push(text),
      onStderr: (text) => seen.push(text),
    })
    assert.deepEqual([done.stdout, done.stderr, done.exitCode], ['red large\n/tmp\n', 'oops\n', 0])
    assert.equal(seen.join('').length, 'red large\n/tmp\noops\n'.length)
    assert.equal((await env.sandbox.commands.run('whoami', { user: 'root' })).stdout, 'root\n')
  })

  it('that fail throw what is known of them', async () => {
    await assert.rejects(env.sandbox.commands.run('echo why >&2; exit 3'), (error) => {
      assert(error instanceof CommandExitError)
      assert.deepEqual([error.exitCode, error.stderr, error.stdout], [3, 'why\n', ''])
      return true
    })
  })

  it('that take too long are ended', async () => {
    await assert.rejects(env.sandbox.commands.run('sleep 600', { timeoutMs: 300 }), TimeoutError)
  })

  it('in the background can be listed, fed, joined and killed', async () => {
    const { commands } = env.sandbox
    const handle = await commands.run('cat; echo end', { background: true, stdin: true, timeoutMs: 0 })
    assert((await commands.list()).some((one) => one.pid === handle.pid))
    const joined = await commands.connect(handle.pid)
    await commands.sendStdin(handle.pid, 'line\n')
    await until('the line comes back', () => handle.stdout.includes('line'))
    await commands.closeStdin(handle.pid)
    assert.equal((await handle.wait()).stdout, 'line\nend\n')
    assert.match((await joined.wait()).stdout, /end\n$/)

    const sleeper = await commands.run('sleep 600', { background: true, timeoutMs: 0 })
    assert.equal(await commands.kill(sleeper.pid), true)
    await assert.rejects(sleeper.wait(), CommandExitError)
    assert.equal(await commands.kill(sleeper.pid), false)

    const other = await commands.run('sleep 600', { background: true, timeoutMs: 0 })
    await other.disconnect()
    const reconnected = await commands.connect(other.pid)
    assert.equal(await reconnected.kill(), true)
    await assert.rejects(commands.connect(999_999), NotFoundError)
  })
})

describe('terminals', () => {
  const env = shared()

  it('are made, typed into, resized, joined and killed', async () => {
    const { pty } = env.sandbox
    let text = ''
    const read = (data) => { text += Buffer.from(data).toString() }
    const handle = await pty.create({ cols: 80, rows: 24, onData: read, envs: { COLOUR: 'blue' }, cwd: '/tmp', timeoutMs: 0 })
    await pty.sendInput(handle.pid, Buffer.from('echo "<$COLOUR-$(pwd)-$(tput cols)>"\n'))
    await until('the terminal answers', () => text.includes('<blue-/tmp-80>'))
    await pty.resize(handle.pid, { cols: 123, rows: 40 })
    let joined = ''
    await handle.disconnect()
    const reconnected = await pty.connect(handle.pid, { onData: (data) => { joined += Buffer.from(data).toString() } })
    await pty.sendInput(handle.pid, Buffer.from('echo "<$(tput cols)>"\n'))
    await until('the new size is known', () => joined.includes('<123>'))
    assert.equal(await pty.kill(handle.pid), true)
    await reconnected.wait().catch(() => {})
  })
})
