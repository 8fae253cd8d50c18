"""The address that a server listens on: from a flag to a bound socket, and from there to a URL."""

from __future__ import annotations

import socket

from aura.errors import StartupFailed


def listen(bind: str) -> socket.socket:
    """Return a socket that is bound to `HOST:PORT`; port 0 picks one. Raises `StartupFailed`."""
    host, _, port = bind.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise StartupFailed(f"--bind {bind!r} is not HOST:PORT", hint="Write it like 127.0.0.1:0 or [::1]:8080.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, int(port)))
        listener.listen(socket.SOMAXCONN)
    except OSError as error:
        listener.close()
        raise StartupFailed(
            f"cannot listen on {bind}: {error.strerror or error}", hint="Choose another port, or port 0 for a free one."
        ) from error
    return listener


def url_of(listener: socket.socket) -> str:
    """Return the address of a bound socket as a URL."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if listener.family == socket.AF_INET6 else f"http://{host}:{port}"
