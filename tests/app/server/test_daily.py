"""The whole snapshot is looked at while it is served: slowly, and what is wrong is in the log."""

from __future__ import annotations

import logging
import os
import queue
import shutil
import time
from logging.handlers import QueueHandler
from pathlib import Path

from app.server import daily
from data.current import read_current


def turn_a_bit(root: Path) -> Path:
    """Turns a bit within a block, of which no sample tells."""
    current = read_current(root)
    assert current is not None
    path = root / current.file
    with path.open("r+b") as file:
        file.seek(20_000)
        bit = file.read(1)[0] ^ 4
        file.seek(20_000)
        file.write(bytes([bit]))
    return path


def test_a_bit_that_no_sample_tells_is_found_and_logged(tmp_path: Path, empty_store: Path) -> None:
    root = Path(shutil.copytree(empty_store, tmp_path / "store"))
    assert daily.found(root, bytes_per_s=1e12) is None
    path = turn_a_bit(root)
    told: queue.Queue[logging.LogRecord] = queue.Queue()
    handler = QueueHandler(told)
    logging.getLogger(daily.__name__).addHandler(handler)
    try:
        thread = daily.begin(root, first_after_s=0.0)
        record = told.get(timeout=20.0)
    finally:
        logging.getLogger(daily.__name__).removeHandler(handler)
    assert thread.native_id is not None
    assert os.getpriority(os.PRIO_PROCESS, thread.native_id) == daily.LOWEST
    assert os.getpriority(os.PRIO_PROCESS, os.getpid()) < daily.LOWEST
    assert record.getMessage().startswith(f"{path}: is damaged (its SHA-256 is not the one that")


def test_it_is_read_no_faster_than_said(empty_store: Path) -> None:
    n_bytes = next(empty_store.glob("warehouse-*.duckdb")).stat().st_size
    begin = time.monotonic()
    assert daily.found(empty_store, bytes_per_s=5 * n_bytes) is None
    assert time.monotonic() - begin > 0.2


def test_where_nothing_was_published_nothing_is_wrong(tmp_path: Path) -> None:
    assert daily.found(tmp_path) is None
    (tmp_path / "CURRENT").write_text("{", "utf-8")
    assert "is not what a publish writes" in str(daily.found(tmp_path))
