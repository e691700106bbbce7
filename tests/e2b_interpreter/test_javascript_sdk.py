"""The JavaScript SDK of the code interpreter, against the same server. $NODE_MODULES says where it is."""

import os
import subprocess
from pathlib import Path

from node import NODE
from program import environment

DRIVER = """
import assert from 'node:assert/strict'
import { Sandbox } from '@e2b/code-interpreter'
const patient = { timeoutMs: 300_000 }
const sandbox = await Sandbox.create({ timeoutMs: 3_600_000, requestTimeoutMs: 300_000 })
try {
  const lines = []
  const onStdout = (message) => lines.push(message.line)
  const execution = await sandbox.runCode('x = 20\\nprint("said")\\nx + 22', { onStdout, ...patient })
  assert.deepEqual([execution.text, lines.join('')], ['42', 'said\\n'])
  const figure = await sandbox.runCode('import matplotlib.pyplot as plt\\nplt.bar(["a"], [1])\\nplt.show()', patient)
  assert.equal(figure.results[0].chart.type, 'bar')
  assert(figure.results[0].png.length > 100)
  const failed = await sandbox.runCode('1/0', patient)
  assert.equal(failed.error.name, 'ZeroDivisionError')
  assert.equal((await sandbox.runCode('console.log(6 * 7)', { language: 'js', ...patient })).logs.stdout.join(''), '42\\n')
  const context = await sandbox.createCodeContext({ language: 'python', cwd: '/tmp' })
  assert.equal((await sandbox.runCode('import os; os.getcwd()', { context, ...patient })).text, '/tmp')
  assert((await sandbox.listCodeContexts()).some((one) => one.id === context.id))
  await sandbox.restartCodeContext(context)
  await sandbox.removeCodeContext(context)
  await assert.rejects(sandbox.runCode('1', { context }))
  const names = ['runCode', 'createCodeContext', 'listCodeContexts', 'restartCodeContext', 'removeCodeContext']
  const known = ['constructor', 'jupyterUrl', 'getJupyterRequestUrl', 'includeDiagnostics', 'handleRequestError', ...names]
  assert.deepEqual(Object.getOwnPropertyNames(Sandbox.prototype).filter((name) => !known.includes(name)), [])
} finally {
  await sandbox.kill()
}
console.log('all of it')
// A refused execution leaves the SDK's timer behind, which would keep this process for a minute.
process.exit(0)
"""


def test_the_javascript_sdk(variables, tmp_path):
    (tmp_path / "node_modules").symlink_to(Path(os.environ["NODE_MODULES"]).resolve())
    (tmp_path / "driver.mjs").write_text(DRIVER)
    done = subprocess.run(
        [NODE, "driver.mjs"], cwd=tmp_path, env=environment(**variables), capture_output=True, text=True, timeout=600
    )
    assert (done.stdout, done.returncode) == ("all of it\n", 0), done.stderr
