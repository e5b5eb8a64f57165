"""Starts the dashboard: Streamlit behind the gate; one line says where it is."""

import contextlib
import errno
import ipaddress
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import streamlit as st
import uvicorn
from starlette.middleware import Middleware
from streamlit import config

from analytics.errors import OutOfRangeError
from app.server import ahead, alerting, daily, log, tokens
from app.server.assets import Assets
from app.server.audit import AuditLine, FailedLogins, after
from app.server.auth import LOOPBACK_NAMES, Access, Gate
from app.server.connections import BACKLOG, Connection
from app.server.disk import Disk
from app.server.front import Front
from app.server.metrics import Metrics
from app.server.tokens import ServeError
from data import uploads
from data.sandbox import landlock_missing

ANSWERS_WITHIN_S = 0.2
UPLOADS_LOOKED_AT_S = 60.0
SWITCH_S = 0.001
"""How long one page may keep Python to itself while others wait: what is sent waits so long for
each page that is being made."""


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 is any free one.

    Raises
    ------
    ServeError, OutOfRangeError
        The host is not one of this machine, or the port is taken.
    """
    if not 0 <= port <= 65535:
        raise OutOfRangeError("port", "between 0 and 65535", port, "pass a free port, e.g. 8501")
    found = _resolve(host)
    taken = ServeError(
        f"port {port} is taken on {host}: stop what listens there, or pass another --port, e.g. "
        f"--port {port + 1 if port < 65535 else port - 1} (--port 0 takes any free one)"
    )
    if port and any(_answers(*each, port) for each in found):
        raise taken
    try:
        return _bind(*found[0], port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise taken from None
        raise ServeError(
            f"cannot listen on {host} port {port} ({error.strerror}): pass another --host or --port"
        ) from error


def _resolve(host: str) -> list[tuple[int, str]]:
    """Address families and addresses of a host, IPv4 first."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ServeError(
            f"host {host!r} is not known: pass an address of this machine, e.g. 127.0.0.1"
        ) from error
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    return [(family, str(address[0])) for family, _, _, _, address in found]


def _answers(family: int, address: str, port: int) -> bool:
    """Whether somebody listens at a loopback address; bind alone does not always tell, as of
    `localhost`, whose link a browser may take to the one of its addresses that we did not take.
    """
    if not ipaddress.ip_address(address).is_loopback:
        return False
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as asking:
        asking.settimeout(ANSWERS_WITHIN_S)
        return asking.connect_ex((address, port)) == 0
    return False


def _bind(family: int, address: str, port: int) -> socket.socket:
    # Named TCP: else asyncio leaves Nagle's algorithm on, and answers wait 40 ms for a receipt.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
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
    token_file: Path | None = None,
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
        0 takes any free one.
    auth
        Whether a link is needed to get in; the printed one is valid until the server stops.
    access_log
        Whether each request is a line on standard error.
    token_file
        File of tokens, which outlive the server and may name persons; made where there is none.
    script
        The Streamlit script.
    """
    host = host.strip("[]")
    store, script = store.resolve(), script.resolve()
    let_in = _tokens(token_file) if auth else None  # before _configure leaves this folder
    with contextlib.closing(listen(host, port)) as listener:
        os.environ["FAULTLINE_STORE"] = str(store)
        _configure(host, listener.getsockname()[1])
        access = _access(listener, host, let_in)
        audit = AuditLine(store)
        failed = FailedLogins(audit.add, after)
        gate = Middleware(
            Gate,
            access=access,
            told=lambda person, action: audit.add(person, action, {}),
            failed=failed.add,
        )
        disk = Disk(store)
        inside = [Middleware(Metrics, disk=disk), Middleware(Assets, disk=disk)]
        before_it = [Middleware(Front, disk=disk), gate, *inside]
        dashboard = st.App(script, middleware=before_it)
        _raise_file_limit()
        sys.setswitchinterval(SWITCH_S)
        server = _Server(
            dashboard, _url(host, access), _notices(listener, access), access_log=access_log
        )
        _remove_abandoned_uploads(store)
        daily.begin(store)
        ahead.begin(store)
        alerting.begin(store)
        # uvicorn stops in good order, then raises the signal again: both end as Ctrl-C does.
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        with contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[listener])
        failed.tell()
        audit.end()
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


def _raise_file_limit() -> None:
    """As many open files as the system allows: each connection is one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # a system whose hard limit is no number
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class _Server(uvicorn.Server):
    """A server that says where it is once it answers."""

    def __init__(
        self, dashboard: st.App, url: str, notices: Sequence[str], *, access_log: bool
    ) -> None:
        super().__init__(
            uvicorn.Config(
                dashboard,
                lifespan="on",
                log_config=log.configuration(access_log=access_log),
                access_log=access_log,
                http=Connection,
                backlog=BACKLOG,
                ws="websockets-sansio",  # this and the times are what Streamlit's own server sets
                ws_per_message_deflate=False,  # as in Streamlit's own server: pages wait for it
                ws_ping_interval=30,
                ws_ping_timeout=30,
                ws_max_size=config.get_option("server.maxMessageSize") * 2**20,
                timeout_graceful_shutdown=2,
            )
        )
        self._url = url
        self._notices = notices

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        log.bound()
        for notice in self._notices:
            print(notice, file=sys.stderr)
        print(f"Faultline is at {self._url}  (Ctrl-C stops it)", flush=True)


def _tokens(path: Path | None) -> Mapping[str, str | None]:
    """Who may come in: one with the link of this start, or those of a file."""
    return {tokens.made(): None} if path is None else tokens.kept(path)


def _access(listener: socket.socket, host: str, let_in: Mapping[str, str | None] | None) -> Access:
    names = LOOPBACK_NAMES | {host.lower(), *config.get_option("server.allowedHosts")}
    return Access(
        port=listener.getsockname()[1],
        tokens=let_in,
        host_names=names if _is_loopback(listener) else None,
    )


def _is_loopback(listener: socket.socket) -> bool:
    return ipaddress.ip_address(listener.getsockname()[0]).is_loopback


def _url(host: str, access: Access) -> str:
    """Link for a browser on this machine; every interface has no address of its own."""
    name = "127.0.0.1" if host in {"0.0.0.0", "::"} else host
    name = f"[{name}]" if ":" in name else name
    return f"http://{name}:{access.port}/" + (f"?token={access.token}" if access.token else "")


def _notices(listener: socket.socket, access: Access) -> list[str]:
    """What to know before people come in."""
    return [each for each in (_warning(listener, access), landlock_missing()) if each is not None]


def _warning(listener: socket.socket, access: Access) -> str | None:
    """What to know before other machines can reach the dashboard."""
    if _is_loopback(listener):
        return None
    where = f"Other machines reach this as http://{socket.gethostname()}:{access.port}/"
    if access.token is None:
        return f"{where}, and nothing asks who they are."
    return f"{where} with the same token; it travels unencrypted unless a TLS proxy is in front."
