import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { FileNotFoundError, InvalidArgumentError, NotEnoughSpaceError } from 'e2b'
import { collect, shared, until } from './test_env.mjs'

describe('files', () => {
  const env = shared()

  it('are written and read in every format', async () => {
    const { files } = env.sandbox
    const info = await files.write('notes/a.txt', 'grüße')
    assert.equal(info.path, '/home/user/notes/a.txt')
    assert.equal(await files.read('notes/a.txt'), 'grüße')
    assert.equal(Buffer.from(await files.read('notes/a.txt', { format: 'bytes' })).toString(), 'grüße')
    assert.equal(await (await files.read('notes/a.txt', { format: 'blob' })).text(), 'grüße')
    assert.equal((await collect(await files.read('notes/a.txt', { format: 'stream' }))).toString(), 'grüße')
    const bytes = new Uint8Array(1 << 20).map((_, index) => index % 251)
    await files.write('b.bin', bytes.buffer)
    assert.deepEqual(Buffer.from(await files.read('b.bin', { format: 'bytes' })), Buffer.from(bytes))
    await files.write('c.bin', new Blob(['from a blob']))
    assert.equal(await files.read('c.bin'), 'from a blob')
    await files.write('d.bin', new Blob(['from a stream']).stream())
    assert.equal(await files.read('d.bin'), 'from a stream')
  })

  it('are written many at a time', async () => {
    const { files } = env.sandbox
    const entries = [1, 2, 3].map((number) => ({ path: `many/${number}`, data: `${number}` }))
    assert.equal((await files.write(entries)).length, 3)
    assert.equal((await files.writeFiles(entries)).length, 3)
    assert.deepEqual((await files.list('many')).map((entry) => entry.name).sort(), ['1', '2', '3'])
  })

  it('can be listed, asked about, renamed and removed', async () => {
    const { files } = env.sandbox
    assert.equal(await files.makeDir('deep/er/est'), true)
    assert.equal(await files.makeDir('deep/er/est'), false)
    assert.equal((await files.list('deep', { depth: 2 })).length, 2)
    await files.write('deep/old', 'x')
    assert.equal((await files.rename('deep/old', 'deep/new')).path, '/home/user/deep/new')
    assert.equal(await files.exists('deep/old'), false)
    const info = await files.getInfo('deep/new')
    assert.deepEqual([info.size, info.permissions, info.owner], [1, '-rw-r--r--', 'user'])
    await files.remove('deep')
    assert.equal(await files.exists('deep'), false)
  })

  it('that are missing or wrong are told by the right error', async () => {
    const { files } = env.sandbox
    await assert.rejects(files.read('nowhere'), FileNotFoundError)
    await assert.rejects(files.getInfo('nowhere'), FileNotFoundError)
    await assert.rejects(files.list('nowhere'), FileNotFoundError)
    await assert.rejects(files.read('/tmp'), InvalidArgumentError)
  })

  it('that do not fit are told by the right error', async () => {
    const { files, commands } = env.sandbox
    const fill = 'fallocate -l $(df --output=avail -B1 / | tail -n 1) /full || true; dd if=/dev/zero of=/fuller bs=64K; true'
    await commands.run(fill, { user: 'root', timeoutMs: 240_000 })
    await assert.rejects(files.write('big', 'x'.repeat(8 << 20)), NotEnoughSpaceError)
    await commands.run('rm -f /full /fuller', { user: 'root', timeoutMs: 240_000 })
  })

  it('can be watched', async () => {
    const { files } = env.sandbox
    await files.makeDir('watched/inner')
    const events = []
    const handle = await files.watchDir('watched', (event) => { events.push(event) }, { recursive: true, timeoutMs: 0 })
    await files.write('watched/inner/news', 'x')
    await until('the write is seen', () => events.some((event) => event.name === 'inner/news'))
    await handle.stop()
  })

  it('come and go by signed links', async () => {
    const { sandbox } = env
    const form = new FormData()
    form.append('file', new Blob(['by link']), 'x')
    const sent = await fetch(await sandbox.uploadUrl('linked.txt'), { method: 'POST', body: form })
    assert.equal(sent.status, 200)
    const got = await fetch(await sandbox.downloadUrl('linked.txt', { useSignatureExpiration: 60_000 }))
    assert.equal(await got.text(), 'by link')
    const url = new URL(await sandbox.downloadUrl('linked.txt'))
    url.searchParams.set('path', '/etc/passwd')
    assert.equal((await fetch(url)).status, 401)
  })
})
