"""The dashboard takes the port asked for, and refuses one that is taken."""

import socket
from contextlib import closing
from pathlib import Path

import pytest

from analytics.errors import OutOfRangeError
from app.server.run import listen
from app.server.tokens import ServeError


def test_a_free_port_is_taken_silently(capsys: pytest.CaptureFixture[str]) -> None:
    with closing(listen("127.0.0.1", 0)) as listener:
        assert listener.getsockname()[1] > 0
    assert capsys.readouterr() == ("", "")


def test_answers_wait_for_no_receipt() -> None:
    with closing(listen("127.0.0.1", 0)) as listener:
        assert listener.proto == socket.IPPROTO_TCP  # what asyncio asks before it sets TCP_NODELAY


INTERFACES = Path("/proc/net/if_inet6")
NEEDS_IPV6 = pytest.mark.skipif(
    not INTERFACES.exists() or not INTERFACES.read_text(), reason="no IPv6 here"
)


@pytest.mark.parametrize(
    ("holder", "host"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.1", "0.0.0.0"),
        ("0.0.0.0", "127.0.0.1"),
        pytest.param("::1", "::1", marks=NEEDS_IPV6),
        pytest.param("::", "127.0.0.1", marks=NEEDS_IPV6),
    ],
)
def test_a_taken_port_is_refused_and_named(holder: str, host: str) -> None:
    with closing(listen(holder, 0)) as first:
        port = first.getsockname()[1]
        with pytest.raises(ServeError, match=rf"port {port} is taken on {host}: .*--port") as told:
            listen(host, port)
    assert "\n" not in str(told.value)
    listen(host, port).close()


def test_localhost_means_the_older_protocol_where_there_are_both() -> None:
    with closing(listen("localhost", 0)) as listener:
        assert listener.family == socket.AF_INET


@NEEDS_IPV6
def test_every_interface_means_both_protocols() -> None:
    with closing(listen("::", 0)) as listener:
        port = listener.getsockname()[1]
        for address in ("127.0.0.1", "::1"):
            with socket.create_connection((address, port), timeout=5) as connection:
                assert connection.getpeername()[1] == port


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_that_does_not_exist_is_refused(port: int) -> None:
    with pytest.raises(OutOfRangeError, match=rf"port must be between 0 and 65535, got {port}"):
        listen("127.0.0.1", port)


@pytest.mark.parametrize("host", ["a" * 300, ""])
def test_a_host_that_does_not_exist_is_refused(host: str) -> None:
    with pytest.raises(ServeError, match=r"is not known: pass an address of this machine"):
        listen(host, 0)


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(ServeError, match=r"cannot listen on 192\.0\.2\.1 port 8501"):
        listen("192.0.2.1", 8501)
