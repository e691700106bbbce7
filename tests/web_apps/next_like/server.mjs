// A server that writes its pages as Next.js does: every path begins at the root, and a form is taken only from its own origin.
import { createServer } from 'node:http'

const page = (body) => `<!doctype html><html><head><title>Next.js-like</title>
<link rel="icon" href="/_next/static/media/icon.svg"><link rel="stylesheet" href="/_next/static/css/app.css">
<script src="/_next/static/chunks/main.js" defer></script></head><body>${body}</body></html>`

const HOME = page(`<h1>Home</h1><p id="greeting"></p><form method="post" action="/submit"></form>`)
const THANKS = page(`<h1>Thanks</h1><a href="/">Back</a>`)
const MAIN = `
addEventListener('load', async () => {
  const greeting = document.querySelector('#greeting')
  if (!greeting) return
  localStorage.setItem('visits', Number(localStorage.getItem('visits')) + 1)
  const data = await (await fetch('/_next/data/build/index.json')).json()
  const reply = await fetch(data.api, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' })
  greeting.innerText = (await reply.json()).greeting
})`

const files = {
  '/': ['text/html', HOME],
  '/thanks': ['text/html', THANKS],
  '/_next/static/chunks/main.js': ['text/javascript', MAIN],
  '/_next/static/css/app.css': ['text/css', 'body { color: rgb(1, 2, 3) }'],
  '/_next/static/media/icon.svg': ['image/svg+xml', '<svg xmlns="http://www.w3.org/2000/svg"/>'],
  '/_next/data/build/index.json': ['application/json', '{"api": "/api/greeting"}'],
  '/api/greeting': ['application/json', '{"greeting": "Hello from /api/greeting"}'],
}

createServer((request, response) => {
  const host = request.headers['x-forwarded-host'] ?? request.headers.host
  if (request.url === '/submit') {
    const isOwn = new URL(request.headers.origin).host === host
    const location = `${request.headers['x-forwarded-proto'] ?? 'http'}://${host}/thanks`
    return response.writeHead(isOwn ? 303 : 403, { location }).end()
  }
  const [type, body] = files[request.url] ?? []
  if (!body) return response.writeHead(404).end()
  response.writeHead(200, { 'content-type': type, 'set-cookie': 'session=set-by-the-server; Path=/' }).end(body)
}).listen(3000)
