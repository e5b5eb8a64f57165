"""What a person sends lies in one folder of the store, and only while it is read."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from data import uploads

if TYPE_CHECKING:
    from pathlib import Path


def test_files_lie_in_the_store_until_the_block_is_left(tmp_path: Path) -> None:
    root = tmp_path / "new" / "store"
    with uploads.kept(root, {"records": io.BytesIO(b"a\n"), "meta": io.BytesIO(b"b")}) as folder:
        assert folder.parent == root / uploads.FOLDER
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
            "records": b"a\n",
            "meta": b"b",
        }
    assert not list(tmp_path.iterdir())  # nothing was published, so the store is not made either


def test_a_store_stays_when_an_upload_goes(tmp_path: Path) -> None:
    (tmp_path / "CURRENT").touch()
    with pytest.raises(KeyError), uploads.kept(tmp_path, {"records": io.BytesIO(b"a")}):
        raise KeyError
    assert [path.name for path in tmp_path.iterdir()] == ["CURRENT"]


def test_an_upload_without_a_reader_is_removed_once_it_is_old(tmp_path: Path) -> None:
    left = tmp_path / uploads.FOLDER / "left"
    left.mkdir(parents=True)
    (left / "records").write_bytes(b"a")
    assert uploads.remove_abandoned(tmp_path) == 0
    os.utime(left, (time.time() - 601, time.time() - 601))
    assert uploads.remove_abandoned(tmp_path) == 1
    assert not left.exists()


def test_an_upload_is_removed_at_start_unless_another_server_reads_it(tmp_path: Path) -> None:
    code = (
        "import io, os, sys, pathlib; from data import uploads\n"
        "with uploads.kept(pathlib.Path(sys.argv[1]), {'records': io.BytesIO(b'a')}):\n"
        "    print('kept', flush=True); sys.stdin.readline(); os._exit(9)"
    )
    server = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    assert server.stdout.readline() == "kept\n"
    assert uploads.remove_abandoned(tmp_path, older_than_s=0) == 0
    server.communicate("\n")  # it ends without taking anything back, as when it is killed
    assert uploads.remove_abandoned(tmp_path, older_than_s=0) == 1
