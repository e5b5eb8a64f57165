"""The table of benchmarks: whoever is compared says the same, and a bar that is missed is seen."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path

import pytest

from app.cli import main
from tests.benchmarks import measured, of_store, table
from tests.benchmarks.accounting import write_sacct
from tests.benchmarks.row import Row, Section

N_ROWS, FIRST, N_FAILED = 2_000, 250_000, 4
"""Attempts of the generated cluster among which some lost a node."""


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A file, and what `faultline mttf` says of it."""
    folder = tmp_path_factory.mktemp("sums")
    path = write_sacct(folder / "sacct.txt", N_ROWS, first=FIRST)
    assert main(["ingest", "sacct", str(path), "--store", str(folder / "store")]) == 0
    with redirect_stdout(io.StringIO()) as printed:
        assert main([*of_store.MTTF, "--store", str(folder / "store")]) == 0
    return path, printed.getvalue()


@pytest.mark.parametrize("name", of_store.SCRIPTS)
def test_a_script_and_faultline_find_the_same_sums(answered: tuple[Path, str], name: str) -> None:
    if "polars" in name:
        pytest.importorskip("polars", reason="polars is no part of what Faultline needs")
    path, printed = answered
    assert json.loads(printed)["failures"] == N_FAILED
    script = import_module(of_store.SCRIPTS[name])
    of_store.agree(name, json.dumps(script.sums(str(path))), printed)


def test_other_sums_are_refused() -> None:
    days = {"exposure_node_days": 7.0}
    wanted = json.dumps({"failures": 4} | days)
    for other in ({"failures": 5} | days, {"failures": 4, "exposure_node_days": 7.0001}):
        with pytest.raises(measured.FailedError, match="found"):
            of_store.agree("a script", json.dumps(other), wanted)


@pytest.mark.parametrize(
    ("seconds", "most_gb", "missed"), [(2.0, 1.0, False), (4.0, 1.0, True), (2.0, 0.1, True)]
)
def test_a_row_that_misses_its_bar_ends_the_command_with_1(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    seconds: float,
    most_gb: float,
    missed: bool,
) -> None:
    row = Row("ingest", (1.0, seconds), "a read", 1.0, 0.5, most_ratio=3.0, most_gb=most_gb)
    monkeypatch.setitem(table.GROUPS, "ingest", lambda made: [Section("Ingest", [row])])
    out = tmp_path / "benchmarks.md"
    assert table.main(["--only", "ingest", "--out", str(out)]) == missed
    assert ("missed: ingest" in capsys.readouterr().err) == missed
    assert f"| ingest | 1 | {seconds:g} | {seconds:g} | a read | 1 |" in out.read_text("utf-8")


def test_what_cannot_be_measured_is_said_and_ends_the_command_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(made: object) -> list[Section]:
        raise measured.FailedError("it ended with 2")

    monkeypatch.setitem(table.GROUPS, "ingest", fail)
    assert table.main(["--only", "ingest"]) == 1
    printed = capsys.readouterr()
    assert "## Ingest\n\nNot measured" in printed.out
    assert "missed: ingest: it ended with 2" in printed.err
