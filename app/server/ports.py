"""Where the dashboard listens: the first free port of a host."""

import errno
import socket
import sys

from analytics.errors import AnalysisError, OutOfRangeError

PORTS_TO_TRY = 50


class ServeError(AnalysisError):
    """The dashboard cannot be served as asked; the message says why and what to do."""


def listen(host: str, port: int) -> socket.socket:
    """A listening socket on the first free port from the given one on; 0 is any free port.

    Raises
    ------
    ServeError, OutOfRangeError
        The host is not one of this machine, or no port is free.
    """
    if not 0 <= port <= 65535:
        raise OutOfRangeError("port", "between 0 and 65535", port, "pass a free port, e.g. 8501")
    family, address = _resolve(host)
    last = min(port + PORTS_TO_TRY, 65536) - 1
    for candidate in range(port, last + 1):
        try:
            listener = _bind(family, address, candidate)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                continue
            raise ServeError(
                f"cannot listen on {host} port {candidate} ({error.strerror}): "
                "pass another --host or --port"
            ) from error
        if candidate != port:
            print(f"Port {port} is taken, using {candidate} instead.", file=sys.stderr)
        return listener
    raise ServeError(f"no port from {port} to {last} is free on {host}: pass another --port")


def _resolve(host: str) -> tuple[int, str]:
    """Address family and address of a host; IPv4 where it has both."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ServeError(
            f"host {host!r} is not known: pass an address of this machine, e.g. 127.0.0.1"
        ) from error
    family, _, _, _, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    return family, str(address[0])


def _bind(family: int, address: str, port: int) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        # A server that has just stopped leaves its port waiting for a minute.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if address == "::":  # every interface means IPv4 too
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind((address, port))
        listener.listen(128)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener
