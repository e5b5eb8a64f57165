"""The faults of a kernel log without a store, and what the user should know of the input."""

from __future__ import annotations

import gzip
import random
from typing import TYPE_CHECKING

import pytest

from data.errors import SourceError
from data.ingest.reader import Options
from data.ingest.readers.logs.kernel_events import kernel_events

if TYPE_CHECKING:
    from pathlib import Path

XID = b"2025-02-23T16:24:18Z n1 kernel: NVRM: Xid (PCI:0000:9b:00): 119, pid=7, name=nvidia-smi\n"


def test_an_archive_that_ends_early_is_told(tmp_path: Path) -> None:
    noise = random.Random(0).randbytes(200_000).hex().encode()  # so that the cut lies behind XID
    path = tmp_path / "kern.log.gz"
    path.write_bytes(gzip.compress(XID + noise)[:100_000])
    found = kernel_events(str(path), Options(partial=True))
    assert [event.xid for event in found.events] == [119]
    assert any("gzip data ends early or is broken" in text for text in found.notices)


def test_bytes_that_are_no_text_are_told(tmp_path: Path) -> None:
    path = tmp_path / "kern.log"
    path.write_bytes(b"\xff\n" + XID)
    found = kernel_events(str(path), Options())
    assert [event.line for event in found.events] == [2]
    assert found.notices == ("1 bytes are not UTF-8: replaced by U+FFFD",)


def test_parquet_is_no_log(tmp_path: Path) -> None:
    path = tmp_path / "kern.parquet"
    path.write_bytes(b"PAR1" + bytes(range(256)) * 16 + b"PAR1")
    with pytest.raises(SourceError, match="is Parquet, and this reads text: give the log itself"):
        kernel_events(str(path), Options())
