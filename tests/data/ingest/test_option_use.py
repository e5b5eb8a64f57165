"""Options that a source ignores."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from app.actions import Options, ingest_files
from data.errors import DataError
from data.ingest.readers import known_readers


def test_an_option_that_a_source_ignores_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    told = "--year says nothing to sacct, only to elasticsearch, kernel-log, loki"
    with pytest.raises(DataError, match=re.escape(told)):
        ingest_files(tmp_path / "store", "sacct", ["none.txt"], Options(year=2024))
    assert not (tmp_path / "store").exists()


def test_what_auto_finds_is_told_and_read(tmp_path: Path) -> None:
    path, at = tmp_path / "jobs.txt", "2024-03-01T10:00:00"
    path.write_text(f"JobID|State|Submit|Start|End\n1|FAILED|{at}|{at}|{at}\n")
    ((result,), _) = ingest_files(tmp_path / "store", "auto", [str(path)], Options(node="n1"))
    assert result.rows_kept == 1
    assert any(text.startswith("--node says nothing to sacct, only to") for text in result.notices)
    # and what its columns leave unknown stands beside it, once
    assert sum(text.startswith("no column SubmitLine:") for text in result.notices) == 1


def test_every_source_named_is_one_and_reads_its_options() -> None:
    stated = {field.name for field in fields(Options)}
    assert {option for reader in known_readers().values() for option in reader.options} <= stated
    assert known_readers()["kernel-log"].ignored(Options(node="n", year=2024, timezone="UTC")) == []
