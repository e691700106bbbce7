import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Volume, VolumeNotFoundError, VolumePathNotFoundError } from 'e2b'
import { collect, withSandbox } from './test_env.mjs'

describe('volumes', () => {
  it('outlive sandboxes, and their files can be had without one', async () => {
    const name = `js-${Date.now()}`
    const volume = await Volume.create(name)
    assert((await Volume.list()).some((one) => one.volumeId === volume.volumeId))
    assert.equal((await Volume.getInfo(volume.volumeId)).name, name)
    await volume.writeFile('/from-outside.txt', 'outside')
    await withSandbox(async (sandbox) => {
      assert.equal(await sandbox.files.read('/mnt/data/from-outside.txt'), 'outside')
      await sandbox.files.write('/mnt/data/from-inside.txt', 'inside')
      assert.equal(await volume.readFile('/from-inside.txt'), 'inside')
    }, { volumeMounts: { '/mnt/data': volume } })
    const connected = await Volume.connect(volume.volumeId)
    assert.equal(await connected.readFile('/from-inside.txt'), 'inside')
    assert.equal(Buffer.from(await connected.readFile('/from-inside.txt', { format: 'bytes' })).toString(), 'inside')
    assert.equal(await (await connected.readFile('/from-inside.txt', { format: 'blob' })).text(), 'inside')
    assert.equal((await collect(await connected.readFile('/from-inside.txt', { format: 'stream' }))).toString(), 'inside')
    assert.equal((await connected.makeDir('/folder')).type, 'directory')
    await connected.updateMetadata('/from-inside.txt', { mode: 0o600, uid: 1000, gid: 1000 })
    assert.equal((await connected.getInfo('/from-inside.txt')).mode & 0o777, 0o600)
    assert.deepEqual((await connected.list('/')).map((entry) => entry.name).sort(),
      ['folder', 'from-inside.txt', 'from-outside.txt'])
    assert.equal(await connected.exists('/folder'), true)
    await connected.remove('/folder')
    assert.equal(await connected.exists('/folder'), false)
    await assert.rejects(connected.readFile('/nowhere'), VolumePathNotFoundError)
    assert.equal(await Volume.destroy(volume.volumeId), true)
    await assert.rejects(Volume.getInfo(volume.volumeId), VolumeNotFoundError)
    assert.equal(await Volume.destroy(volume.volumeId), false)
  })
})
