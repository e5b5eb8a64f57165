"""Storages of objects: a folder that is listed and read as one, and a server of S3 here."""

from __future__ import annotations

import logging
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import pytest
from pyarrow.fs import LocalFileSystem, S3FileSystem, SubTreeFileSystem

BUCKET = "bucket"


class Line(Protocol):
    """What comes from a storage."""

    n_bytes: int


class Storage(Protocol):
    """A storage with one bucket."""

    def put(self, path: Path, key: str) -> str:
        """Uploads a file; its address."""

    def make_folder(self, prefix: str) -> None:
        """A folder without objects."""

    def remove(self, key: str) -> None:
        """Deletes an object."""

    def line(self, most: int | None = None) -> AbstractContextManager[Line]:
        """Counts what comes from the storage, which breaks off after so many bytes."""


def put_all(storage: Storage, folder: Path, prefix: str) -> str:
    """Uploads the files of a folder; its address."""
    for path in folder.iterdir():
        storage.put(path, f"{prefix}/{path.name}")
    return f"s3://{BUCKET}/{prefix}"


class Folder:
    """A folder, in which reductions find the objects of all addresses from now on."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._bucket = root / BUCKET
        self._bucket.mkdir(parents=True)
        self._files = SubTreeFileSystem(str(root), LocalFileSystem())
        self._most: int | None = None
        self.n_bytes = 0
        monkeypatch.setattr(
            "data.reduce.objects._storage", lambda begin, *_: (self, begin.partition("://")[2])
        )

    def put(self, path: Path, key: str) -> str:
        there = self._bucket / key
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, there)
        return f"s3://{BUCKET}/{key}"

    def make_folder(self, prefix: str) -> None:
        (self._bucket / prefix).mkdir(parents=True)

    def remove(self, key: str) -> None:
        (self._bucket / key).unlink()

    @contextmanager
    def line(self, most: int | None = None) -> Iterator[Line]:
        self.n_bytes, self._most = 0, most
        yield self
        self._most = None

    def get_file_info(self, asked: Any) -> Any:
        """What pyarrow's file system says."""
        return self._files.get_file_info(asked)

    def open_input_file(self, path: str) -> Any:
        """A file of pyarrow, whose reads are counted."""
        storage, opened = self, self._files.open_input_file(path)

        class Counted:
            def size(self) -> int:
                return int(opened.size())

            def read_at(self, size: int, offset: int) -> bytes:
                read = bytes(opened.read_at(size, offset))
                storage.n_bytes += len(read)
                if storage._most is not None and storage.n_bytes > storage._most:
                    raise OSError("AWS Error NETWORK_CONNECTION during GetObject operation")
                return read

        return Counted()


class S3:
    """A server of S3, which reductions find by their environment from now on."""

    def __init__(self, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self._port, self._monkeypatch, endpoint = port, monkeypatch, f"http://127.0.0.1:{port}"
        self._files = S3FileSystem(
            access_key="key", secret_key="secret", endpoint_override=endpoint,
            allow_bucket_creation=True,
        )  # fmt: skip
        self._files.create_dir(BUCKET)
        environment(monkeypatch, endpoint)

    def put(self, path: Path, key: str) -> str:
        with self._files.open_output_stream(f"{BUCKET}/{key}", compression=None) as target:
            target.write(path.read_bytes())
        return f"s3://{BUCKET}/{key}"

    def make_folder(self, prefix: str) -> None:
        self._files.create_dir(f"{BUCKET}/{prefix}")  # an object of no bytes

    def remove(self, key: str) -> None:
        self._files.delete_file(f"{BUCKET}/{key}")

    @contextmanager
    def line(self, most: int | None = None) -> Iterator[Line]:
        line = _Line(self._port, most)
        with self._monkeypatch.context() as patch:
            patch.setenv("AWS_ENDPOINT_URL", line.endpoint)
            yield line
        line.close()


def environment(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    """Credentials and an endpoint."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_ENDPOINT_URL": endpoint,
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)


@contextmanager
def s3_server() -> Iterator[int]:
    """The port of a server."""
    if find_spec("moto") is None:
        pytest.skip("no server of S3: pip install -e .[s3-server]")
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        yield int(server.get_host_and_port()[1])
    finally:
        server.stop()


class _Line:
    """A line to a server, which counts the bytes that come from there, and may break after some."""

    def __init__(self, to_port: int, most: int | None) -> None:
        self.n_bytes, self._to_port, self._most = 0, to_port, most
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._ends: list[socket.socket] = []
        self.endpoint = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Nothing passes any more, and nobody listens."""
        for end in (self._listening, *self._ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                far = socket.create_connection(("127.0.0.1", self._to_port))
                self._ends += [near, far]
                for ends in ((near, far), (far, near)):
                    args = (*ends, ends[0] is far)
                    threading.Thread(target=self._pass_on, args=args, daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, counted: bool) -> None:
        with suppress(OSError):
            while block := source.recv(1 << 14):
                self.n_bytes += len(block) * counted
                if self._most is not None and self.n_bytes > self._most:
                    self.close()
                target.sendall(block)
            target.shutdown(socket.SHUT_WR)
