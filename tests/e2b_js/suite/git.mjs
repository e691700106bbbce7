import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { GitAuthError, GitUpstreamError } from 'e2b'
import { shared } from './test_env.mjs'

describe('git', () => {
  const env = shared()
  const path = '/home/user/project'

  it('goes from nothing to a pushed commit and back', async () => {
    const { git, files, commands } = env.sandbox
    await commands.run('git init --bare -b main /home/user/origin.git')
    await git.init(path, { initialBranch: 'main' })
    await git.configureUser('Ada', 'ada@example.com')
    await git.setConfig('pull.rebase', 'false')
    assert.equal(await git.getConfig('user.name'), 'Ada')
    await files.write(`${path}/a.txt`, 'one')
    assert.equal((await git.status(path)).hasUntracked, true)
    await git.add(path)
    await git.commit(path, 'First')
    await git.remoteAdd(path, 'origin', '/home/user/origin.git')
    assert.equal(await git.remoteGet(path, 'origin'), '/home/user/origin.git')
    await assert.rejects(git.push(path), GitUpstreamError)
    await git.push(path, { remote: 'origin', branch: 'main', setUpstream: true })
    await git.clone('/home/user/origin.git', { path: '/home/user/copy' })
    assert.equal(await files.read('/home/user/copy/a.txt'), 'one')

    await git.createBranch(path, 'topic')
    await git.checkoutBranch(path, 'main')
    assert.deepEqual((await git.branches(path)).branches.sort(), ['main', 'topic'])
    await git.deleteBranch(path, 'topic', { force: true })
    await files.write(`${path}/a.txt`, 'two')
    await git.restore(path, { paths: ['a.txt'] })
    assert.equal(await files.read(`${path}/a.txt`), 'one')
    await files.write(`${path}/a.txt`, 'three')
    await git.add(path)
    await git.reset(path, { mode: 'hard' })
    await files.write(`${path}/b.txt`, 'b')
    await git.add(path)
    await git.commit(path, 'Second')
    await git.push(path)
    await git.pull('/home/user/copy')
    assert.equal(await files.read('/home/user/copy/b.txt'), 'b')
  })

  it('says when it may not', async () => {
    const { git } = env.sandbox
    await git.dangerouslyAuthenticate({ username: 'ada', password: 'wrong', host: '127.0.0.1:9', protocol: 'http' })
    const server = `import http.server as h
class H(h.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(401); self.send_header("WWW-Authenticate", "Basic realm=x"); self.end_headers()
h.HTTPServer(("127.0.0.1", 8099), H).serve_forever()`
    await env.sandbox.files.write('locked.py', server)
    await env.sandbox.commands.run('python3 locked.py', { background: true, timeoutMs: 0 })
    const listens = 'until curl -s -o /dev/null http://127.0.0.1:8099; do sleep 0.05; done'
    await env.sandbox.commands.run(listens, { timeoutMs: 240_000 })
    await assert.rejects(git.clone('http://127.0.0.1:8099/x.git', { path: '/home/user/x' }), GitAuthError)
  })
})
