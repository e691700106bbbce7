"""Signatures computed as the server computes them, to make links and tokens that it never issued."""

import base64
import hashlib
import hmac
import sqlite3
import time

MINUTE_MS = 60_000


def now_ms():
    return int(time.time() * 1000)


def file_signature(token, path, operation, user="", expiration=None):
    """The signature of an E2B file URL; `expiration` is in seconds since 1970."""
    text = f"{path}:{operation}:{user}:{token}" + (f":{expiration}" if expiration is not None else "")
    return "v1_" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


def secret_of(data):
    """The secret of an installation whose store is the SQLite file of a data directory."""
    database = sqlite3.connect(f"file:{data.path}/sandyard.db?mode=ro", uri=True)
    try:
        return database.execute("select value from meta where name = 'auth.secret'").fetchone()[0]
    finally:
        database.close()


class Signer:
    """Someone who knows the secret of an installation."""

    def __init__(self, secret):
        self._secret = secret.encode()

    def preview(self, sandbox, port, expires_ms):
        """The token of a preview link."""
        return self._sign("preview", f"{sandbox}:{port}", expires_ms)

    def node(self, expires_ms):
        """The token that one server shows to another."""
        return self._sign("node", "node", expires_ms)

    def _sign(self, purpose, subject, expires_ms):
        key = _hmac(self._secret, f"sandyard/{purpose}/1")
        tag = _hmac(key, f"{subject}\n{expires_ms}")
        return f"{expires_ms}.{base64.urlsafe_b64encode(tag).decode().rstrip('=')}"


def _hmac(key, message):
    return hmac.new(key, message.encode(), hashlib.sha256).digest()
