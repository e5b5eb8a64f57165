"""Checksums of logged steps are kept letter by letter, by every way of reading."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from analytics.training.indicator_names import indicator
from data.ingest.formats.source import opened
from data.ingest.logged_steps import logged_steps
from data.ingest.reader import Options
from data.ingest.readers import known_readers
from data.ingest.readers.training.checksums import WORDS, is_checksum

if TYPE_CHECKING:
    from pathlib import Path

ALIKE_AS_NUMBERS = [
    ("12345678901234688001", "12345678901234688002"),
    ("0120e5", "0120e05"),
    ("00000000000e8009", "00000000000e8109"),
    ("1" * 400, "2" * 400),
]
SHORT = ["h000001", "kX2+/w==", 'a"b\\c', "0", "inf", "12:34:56"]


def series_of(folder: Path, text: str, reader: str) -> list[dict[str, Any]]:
    """Further series of all rows, as a reader of stores keeps them."""
    path = folder / "steps"
    path.write_text(text, encoding="utf-8")
    with duckdb.connect() as connection, opened(str(path), folder) as found:
        connection.execute("SET TimeZone = 'UTC'")
        batch = known_readers()[reader].read(found, Options(job_id="7"), connection)
        rows = batch.tables["training_metrics"].project("series").fetchall()
    assert batch.rows_kept == len(rows)
    return [json.loads(series) for (series,) in rows]


@pytest.mark.parametrize("pair", ALIKE_AS_NUMBERS)
def test_two_checksums_that_are_one_number_stay_two(tmp_path: Path, pair: tuple[str, str]) -> None:
    csv = "step,loss,rank,param_checksum\n" + "".join(
        f"5,2.5,{rank},{text}\n" for rank, text in enumerate((*pair, pair[0]))
    )
    one, other, again = (
        row["param_checksum"] for row in series_of(tmp_path, csv, "training-metrics")
    )
    assert one == again != other
    if len(pair[0]) <= 128:
        assert (one, other) == pair


def test_whole_numbers_of_json_keep_all_their_digits(tmp_path: Path) -> None:
    lines = [{"step": 1, "loss": 2.0, "rank": rank, "p": {"hash": 2**60 + rank}} for rank in (0, 1)]
    lines.append({"step": 2, "loss": 2.0, "rank": 0, "p": {"hash": "0120e5"}})
    text = "\n".join(map(json.dumps, lines))
    kept = [row["p/hash"] for row in series_of(tmp_path, text, "training-json")]
    assert kept == ["1152921504606846976", "1152921504606846977", "0120e5"]


@pytest.mark.parametrize("text", SHORT)
def test_short_texts_of_every_kind_are_kept_of_a_checksum(tmp_path: Path, text: str) -> None:
    line = json.dumps({"step": 1, "loss": 2.0, "digest": text, "phase": text})
    (row,) = series_of(tmp_path, line, "training-json")
    assert row["digest"] == text


def test_a_checksum_is_no_series_of_numbers(tmp_path: Path) -> None:
    path = tmp_path / "steps.csv"
    path.write_text("step,loss,lr2,crc32\n" + "".join(f"{n},2.5,1.5,{n}00\n" for n in range(9)))
    assert list(logged_steps(path, Options()).series) == ["lr2"]
    path = tmp_path / "steps.jsonl"
    path.write_text(
        "\n".join(f'{{"step": {n}, "loss": 2, "lr2": 1, "crc": {n}}}' for n in range(9))
    )
    assert list(logged_steps(path, Options()).series) == ["lr2"]


def test_a_name_says_checksum_here_where_the_analysis_compares_it_as_one() -> None:
    names = [form for word in WORDS for form in (word, f"params/{word}", f"{word}s", f"my{word}")]
    names += ["weightHash", "SHA256", "crc-32", "Crc32", "loss", "hashrate", "layer3.digest.max"]
    for name in names:
        assert is_checksum(name) == (indicator(name) == "checksum"), name
