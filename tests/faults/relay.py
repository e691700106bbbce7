"""A TCP relay that can be cut: open connections are reset and new ones refused, until it is joined again."""

import socket
import struct
import threading

from ports import free_port


class Relay:
    def __init__(self, port):
        self._target = ("127.0.0.1", port)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._open, self._lock = set(), threading.Lock()
        self._listener = None

    def __enter__(self):
        self.join()
        return self

    def __exit__(self, *_):
        self.cut()

    def join(self):
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=256)
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def cut(self):
        listener, self._listener = self._listener, None
        # Wakes the thread that accepts, which `close` alone does not.
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        with self._lock:
            ends, self._open = self._open, set()
        for end in ends:
            reset(end)

    def _accept(self, listener):
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self._target)
            except OSError:
                near.close()
                continue
            with self._lock:
                self._open |= {near, far}
            for ends in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, source, target):
        try:
            while data := source.recv(1 << 16):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            reset(source)
            reset(target)
        with self._lock:
            self._open -= {source}


def reset(end):
    """Ends a connection as a cut network would: nothing more goes out, not even a farewell."""
    try:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    end.close()
