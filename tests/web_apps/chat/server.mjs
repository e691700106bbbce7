// A chat over WebSocket that, as many frameworks do, takes connections only from pages of its own host.
import { createServer } from 'node:http'
import { WebSocketServer } from 'ws'

const PAGE = `<!doctype html><html><head><title>Chat</title><link rel="icon" href="data:,"></head>
<body><p id="status"></p><p id="said"></p><script>
const socket = new WebSocket((location.protocol === 'https:' ? 'wss://' : 'ws://') + location.host + '/chat', 'chat')
const show = (selector, text) => (document.querySelector(selector).innerText = text)
const say = (text) => socket.send(text)
socket.onopen = () => show('#status', 'connected')
socket.onmessage = (event) => show('#said', event.data)
</script></body></html>`

const server = createServer((_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end(PAGE))
const isOwn = ({ origin, req }) => new URL(origin).host === req.headers.host
const sockets = new WebSocketServer({ server, path: '/chat', verifyClient: isOwn })
sockets.on('connection', (socket) =>
  socket.on('message', (text) => sockets.clients.forEach((client) => client.send(text.toString()))),
)
server.listen(8080)
