"""News of sandboxes for clients that listen, over Socket.IO as the SDK expects them."""

import socketio

_CHANNEL = "organization"


class Events:
    """Tells every listener with the right key."""

    def __init__(self, key):
        self._key = key
        self._server = socketio.AsyncServer(async_mode="aiohttp", logger=False, engineio_logger=False)
        self._server.on("connect", self._connect)

    def attach(self, app):
        self._server.attach(app, socketio_path="api/socket.io")

    async def close(self):
        await self._server.shutdown()

    async def _connect(self, listener, _environment, auth=None):
        if (auth or {}).get("token") != self._key:
            raise ConnectionRefusedError("unauthorized")
        await self._server.enter_room(listener, _CHANNEL)

    async def created(self, dto):
        await self._server.emit("sandbox.created", dto, room=_CHANNEL)

    async def changed(self, dto, before, after):
        outcome = {"sandbox": dto, "oldState": before, "newState": after}
        await self._server.emit("sandbox.state.updated", outcome, room=_CHANNEL)
