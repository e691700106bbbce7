"""Real proxies of this host: HTTP (`CONNECT` and whole URLs) and SOCKS 5. Both remember where they were asked to go."""

import base64
import socket
import struct
import threading
import urllib.parse

from ports import free_port


def carry(client, other):
    """Carries bytes both ways until both sides are done."""
    back = threading.Thread(target=_pump, args=[other, client], daemon=True)
    back.start()
    _pump(client, other)
    back.join()


def _pump(source, sink):
    try:
        while piece := source.recv(65_536):
            sink.sendall(piece)
    except OSError:
        pass
    finally:
        try:
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class _Relay:
    """A proxy. `resolve` turns a name into an address: the names of the tests are known to nobody else."""

    def __init__(self, resolve, credentials=None):
        self.request_log = []
        self._resolve = resolve
        # `user:password`; without them nobody is asked.
        self._credentials = credentials
        # A fixed port: while this proxy is down, no other process must answer.
        self._listener = socket.create_server(("127.0.0.1", free_port()), backlog=256)
        self.port = self._listener.getsockname()[1]

    @property
    def url(self):
        login = f"{self._credentials}@" if self._credentials else ""
        return f"{self.scheme}://{login}127.0.0.1:{self.port}"

    def __enter__(self):
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._handle, args=[connection], daemon=True).start()

    def _handle(self, connection):
        with connection:
            try:
                self.handle(connection)
            except (OSError, ValueError, struct.error, IndexError):
                pass

    def dial(self, host, port):
        return socket.create_connection((self._resolve(host) or host, port), 60)


class HttpProxy(_Relay):
    scheme = "http"

    def handle(self, connection):
        head = b""
        while b"\r\n\r\n" not in head:
            piece = connection.recv(4096)
            if not piece:
                return
            head += piece
        head, _, rest = head.partition(b"\r\n\r\n")
        first, *headers = head.decode().split("\r\n")
        method, target, version = first.split(" ")
        self.request_log.append((method, target))
        if self._credentials:
            expected = "basic " + base64.b64encode(self._credentials.encode()).decode()
            given = [line.partition(":")[2].strip() for line in headers if line.lower().startswith("proxy-authorization:")]
            if [value.replace("Basic", "basic") for value in given] != [expected]:
                connection.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
                return
        if method == "CONNECT":
            host, _, port = target.rpartition(":")
            with self.dial(host.strip("[]"), int(port)) as other:
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                other.sendall(rest)
                carry(connection, other)
            return
        url = urllib.parse.urlsplit(target)
        with self.dial(url.hostname, url.port or 80) as other:
            path = urllib.parse.urlunsplit(("", "", url.path or "/", url.query, ""))
            stored = [line for line in headers if not line.lower().startswith(("proxy-", "connection:"))]
            request = "\r\n".join([f"{method} {path} {version}", *stored, "Connection: close", "", ""])
            other.sendall(request.encode() + rest)
            carry(connection, other)


class SocksProxy(_Relay):
    """RFC 1928, and RFC 1929 where there are credentials."""

    scheme = "socks5"

    def handle(self, connection):
        reader = connection.makefile("rb")
        _, count = reader.read(2)
        offered = reader.read(count)
        method = 2 if self._credentials else 0
        if method not in offered:
            connection.sendall(b"\x05\xff")
            return
        connection.sendall(bytes([5, method]))
        if self._credentials:
            is_right = self._login(reader) == self._credentials
            connection.sendall(b"\x01" + (b"\x00" if is_right else b"\x01"))
            if not is_right:
                return
        _, command, _, kind = reader.read(4)
        host = {
            1: lambda: socket.inet_ntop(socket.AF_INET, reader.read(4)),
            3: lambda: reader.read(reader.read(1)[0]).decode(),
            4: lambda: socket.inet_ntop(socket.AF_INET6, reader.read(16)),
        }[kind]()
        port = struct.unpack(">H", reader.read(2))[0]
        self.request_log.append(("CONNECT" if command == 1 else str(command), f"{host}:{port}"))
        with self.dial(host, port) as other:
            connection.sendall(b"\x05\x00\x00\x01" + b"\x00" * 6)
            carry(connection, other)

    @staticmethod
    def _login(reader):
        reader.read(1)
        user = reader.read(reader.read(1)[0]).decode()
        return f"{user}:{reader.read(reader.read(1)[0]).decode()}"
