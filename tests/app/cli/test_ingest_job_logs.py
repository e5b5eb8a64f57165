"""faultline ingest job-log: a folder of logs on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "run.4711.txt").write_text("one\ntwo\nthree\n", encoding="utf-8")
    return folder


def test_a_folder_is_read_by_pattern_and_capped(
    faultline: Callable[..., Any], tmp_path: Path, logs: Path
) -> None:
    store = tmp_path / "store"
    said = faultline("ingest", "job-log", logs, "--pattern", "run.%j.txt", "--first-lines", 1,
                     "--last-lines", 1, "--store", store)  # fmt: skip
    assert said.code == 0
    assert (said.json["rows_read"], said.json["rows_kept"], said.json["rows_skipped"]) == (3, 2, 1)
    rows = faultline("sql", "SELECT job_id, line_no, text FROM job_logs", "--store", store).json
    assert [(row["job_id"], row["line_no"], row["text"]) for row in rows] == [
        ("4711", 1, "one"),
        ("4711", 3, "three"),
    ]


def test_a_folder_needs_no_name_of_its_source(
    faultline: Callable[..., Any], tmp_path: Path, logs: Path
) -> None:
    said = faultline("ingest", "auto", logs, "--store", tmp_path / "store")
    assert said.json["source"] == "job-log"


@pytest.mark.parametrize(
    "arguments", [("job-log", "empty"), ("sacct", "logs"), ("job-log", "logs", "--pattern", "%x")]
)
def test_what_cannot_be_read_is_refused_and_leaves_no_store(
    refused: Callable[..., str], tmp_path: Path, logs: Path, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "empty").mkdir()
    source, folder, *options = arguments
    message = refused("ingest", source, tmp_path / folder, *options, "--store", tmp_path / "store")
    assert str(tmp_path / folder) in message or "pattern" in message
    assert not (tmp_path / "store" / "CURRENT").exists()
