"""What no spreadsheet may run, and numbers that must stay numbers."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.show.scope import Scope
from app.words.cells import Column, neutral, neutral_frame, texts
from data.filters import Selection

FORMULAS = ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "=", "-cmd|x", "\uff1d1",
            "+44 20 7946", "--redact", "-1e5x", "=HYPERLINK(\"http://x\",\"y\")", "\u00a0=1"]  # fmt: skip
HARMLESS = ["-1", "-1.5", "+3", "1e-5", "-1e5", "-12,345", "-3.2 %", "a=b", "n1", "", "x-y", "3 - 2",
            "2026-01-01", "'=1"]  # fmt: skip


@pytest.mark.parametrize("text", FORMULAS, ids=range(len(FORMULAS)))
def test_a_formula_becomes_text(text: str) -> None:
    assert neutral(text) == f"'{text}"


@pytest.mark.parametrize("text", HARMLESS, ids=range(len(HARMLESS)))
def test_what_is_no_formula_stays(text: str) -> None:
    assert neutral(text) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_stays_as_it_is(value: float) -> None:
    assert neutral(repr(value)) == repr(value)


@given(st.text())
def test_no_text_begins_like_a_formula_afterwards(text: str) -> None:
    said = neutral(text)
    assert said in (text, f"'{text}")
    if said == text and text.strip()[:1] in ("=", "@"):
        raise AssertionError(text)


def test_a_download_keeps_numbers_and_says_its_filter() -> None:
    frame = pd.DataFrame(
        {"=name": ["=1+1", "fine", None], "loss": [-1.5, 2.0, None], "nodes": [["=x"], [], []]}
    )
    scope = Scope(Selection(cluster="=c"), "UTC", False, 3, "light", False)
    rows = list(csv.DictReader(io.StringIO(scope.csv(frame))))
    assert [row["'=name"] for row in rows] == ["'=1+1", "fine", ""]
    assert [row["loss"] for row in rows] == ["-1.5", "2.0", ""]
    assert rows[0]["faultline_selection"].startswith("'=c")


def test_a_frame_of_numbers_is_untouched() -> None:
    frame = pd.DataFrame({"a": [1, -2], "b": [0.5, -0.5]})
    assert neutral_frame(frame).equals(frame)


def test_the_command_line_neutralises_its_csv_only(
    awkward_store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from app.cli import main

    main(["failures", "--list", "--store", str(awkward_store), "--format", "csv"])
    assert "'=cmd()" in capsys.readouterr().out
    main(["failures", "--list", "--store", str(awkward_store), "--format", "json"])
    assert '"=cmd()"' in capsys.readouterr().out


def test_what_is_not_known_is_said_in_the_words_of_its_column() -> None:
    assert texts(Column("a", "A", "count"), None) == ("unknown",)
    assert texts(Column("a", "A", "time", none="lasts"), None) == ("lasts",)
    assert texts(Column("a", "A"), None) == ("",)
