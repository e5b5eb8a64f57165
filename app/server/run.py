"""Starts the dashboard: Streamlit behind the gate, on a free port; one line says where it is."""

import contextlib
import copy
import errno
import ipaddress
import logging
import os
import resource
import secrets
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

import streamlit as st
import uvicorn
from starlette.middleware import Middleware
from streamlit import config

from analytics.errors import AnalysisError, OutOfRangeError
from app.server.auth import LOOPBACK_NAMES, Access, Gate
from app.server.front import Front
from data import uploads

PORTS_TO_TRY = 50
UPLOADS_LOOKED_AT_S = 60.0


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


ROOT = Path(__file__).resolve().parents[2]


def serve(
    store: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8501,
    auth: bool = True,
    access_log: bool = False,
    script: Path = ROOT / "app" / "main.py",
) -> None:
    """Serve the dashboard of a store until Ctrl-C or SIGTERM.

    One line on standard output gives the address once requests are answered; notices go to
    standard error. Raises ServeError or OutOfRangeError where the host or port cannot be had.

    Parameters
    ----------
    store
        Directory of the store; the dashboard finds it in FAULTLINE_STORE.
    host
        Name or address to listen on; others than this machine reach it only if told so.
    port
        Where it is taken, the next free one of 50 is used. 0 takes any free port.
    auth
        Whether the printed link, valid until the server stops, is needed to get in.
    access_log
        Whether each request is a line on standard error.
    script
        The Streamlit script.
    """
    host = host.strip("[]")
    store, script = store.resolve(), script.resolve()
    with contextlib.closing(listen(host, port)) as listener:
        os.environ["FAULTLINE_STORE"] = str(store)
        _configure(host, listener.getsockname()[1])
        access = _access(listener, host, auth)
        before_it = [Middleware(Front, store=store), Middleware(Gate, access=access)]
        dashboard = st.App(script, middleware=before_it)
        _raise_file_limit()
        server = _Server(
            dashboard, _url(host, access), _warning(listener, access), access_log=access_log
        )
        _remove_abandoned_uploads(store)
        # uvicorn stops in good order, then raises the signal again: both end as Ctrl-C does.
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        with contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[listener])
        signal.signal(signal.SIGTERM, before)


def _remove_abandoned_uploads(store: Path) -> None:
    """Removes uploads that an earlier server left, and from now on those that nobody reads."""
    uploads.remove_abandoned(store, older_than_s=0)

    def look() -> None:
        while True:
            time.sleep(UPLOADS_LOOKED_AT_S)
            uploads.remove_abandoned(store)

    threading.Thread(target=look, daemon=True, name="abandoned uploads").start()


def _configure(host: str, port: int) -> None:
    """Let Streamlit read the project's config.toml: it looks in the working directory."""
    os.chdir(ROOT)
    flags = {"server.address": host, "server.port": port}
    config.get_config_options(force_reparse=True, options_from_flags=flags)


class WithoutQuery(logging.Filter):
    """Cuts queries from logged requests: the link's token is one, and filters name people."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keeps every line; of its arguments the third is the address."""
        if isinstance(record.args, tuple) and len(record.args) > 2:
            client, method, address, *rest = record.args
            record.args = (client, method, str(address).partition("?")[0], *rest)
        return True


def _logged(*, access_log: bool) -> dict[str, Any]:
    """uvicorn's own logging, warnings alone; requests too where they are asked for.

    Standard output is for the link: all of it goes to standard error.
    """
    logged = copy.deepcopy(uvicorn.config.LOGGING_CONFIG)
    logged["handlers"]["access"] |= {"stream": "ext://sys.stderr", "filters": ["no query"]}
    logged["filters"] = {"no query": {"()": WithoutQuery}}
    for name in ("uvicorn", "uvicorn.error"):
        logged["loggers"][name]["level"] = "WARNING"
    logged["loggers"]["uvicorn.access"]["level"] = "INFO" if access_log else "WARNING"
    return logged


def _raise_file_limit() -> None:
    """As many open files as the system allows: each connection is one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # a system whose hard limit is no number
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class _Server(uvicorn.Server):
    """A server that says where it is once it answers."""

    def __init__(
        self, dashboard: st.App, url: str, warning: str | None, *, access_log: bool
    ) -> None:
        super().__init__(
            uvicorn.Config(
                dashboard,
                lifespan="on",
                log_config=_logged(access_log=access_log),
                access_log=access_log,
                ws="websockets-sansio",  # this and the times are what Streamlit's own server sets
                ws_ping_interval=30,
                ws_ping_timeout=30,
                ws_max_size=config.get_option("server.maxMessageSize") * 2**20,
                timeout_graceful_shutdown=2,
            )
        )
        self._url = url
        self._warning = warning

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._warning is not None:
            print(self._warning, file=sys.stderr)
        print(f"Faultline is at {self._url}  (Ctrl-C stops it)", flush=True)


def _access(listener: socket.socket, host: str, auth: bool) -> Access:
    names = LOOPBACK_NAMES | {host.lower(), *config.get_option("server.allowedHosts")}
    return Access(
        port=listener.getsockname()[1],
        token=secrets.token_urlsafe(32) if auth else None,
        host_names=names if _is_loopback(listener) else None,
    )


def _is_loopback(listener: socket.socket) -> bool:
    return ipaddress.ip_address(listener.getsockname()[0]).is_loopback


def _url(host: str, access: Access) -> str:
    """Link for a browser on this machine; every interface has no address of its own."""
    name = "127.0.0.1" if host in {"0.0.0.0", "::"} else host
    name = f"[{name}]" if ":" in name else name
    return f"http://{name}:{access.port}/" + (f"?token={access.token}" if access.token else "")


def _warning(listener: socket.socket, access: Access) -> str | None:
    """What to know before other machines can reach the dashboard."""
    if _is_loopback(listener):
        return None
    where = f"Other machines reach this as http://{socket.gethostname()}:{access.port}/"
    if access.token is None:
        return f"{where}, and nothing asks who they are."
    return f"{where} with the same token; it travels unencrypted unless a TLS proxy is in front."
