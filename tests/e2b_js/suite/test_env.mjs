// A sandbox for a group of tests, and what tests need around it.

import http from 'node:http'
import { after, before } from 'node:test'
import { Sandbox } from 'e2b'

// A sandbox that all tests of the calling group share.
export function shared(options = {}) {
  const holder = {}
  before(async () => {
    holder.sandbox = await Sandbox.create({ timeoutMs: 1_200_000, ...options })
  })
  after(async () => {
    await holder.sandbox?.kill()
  })
  return holder
}

// Gives `work` a sandbox of its own, and takes it away whatever happens.
export async function withSandbox(work, options = {}, template = undefined) {
  const sandbox = await (template
    ? Sandbox.create(template, { timeoutMs: 1_200_000, ...options })
    : Sandbox.create({ timeoutMs: 1_200_000, ...options }))
  try {
    return await work(sandbox)
  } finally {
    await sandbox.kill()
  }
}

// Waits for what must come to be; says what did not.
export async function until(what, condition, patienceMs = 90_000) {
  const end = Date.now() + patienceMs
  for (;;) {
    const value = await condition()
    if (value) return value
    if (Date.now() > end) throw new Error(`not within ${patienceMs} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

export async function collect(stream) {
  const pieces = []
  for await (const piece of stream) pieces.push(Buffer.from(piece))
  return Buffer.concat(pieces)
}

// Opens what `getHost` names. With a domain its name resolves; names below `localhost` are known to browsers and curl but not to
// every resolver, so in plain mode the name goes into the header alone.
export async function open(host, path) {
  if (process.env.E2B_DOMAIN) {
    const answer = await fetch(`https://${host}${path}`)
    return { status: answer.status, text: await answer.text() }
  }
  const url = new URL(path, process.env.E2B_SANDBOX_URL)
  return new Promise((resolve, reject) => {
    const request = http.get(url, { headers: { host } }, async (answer) => {
      resolve({ status: answer.statusCode, text: (await collect(answer)).toString() })
    })
    request.on('error', reject)
  })
}
