"""faultline audit: what commands did, by whom, and what is refused."""

from __future__ import annotations

import csv
import getpass
import io
import json
import shutil
from typing import TYPE_CHECKING

import pytest

from app.cli import main
from data.audit import Audit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

XID = "2026-01-02T03:04:05+00:00 n1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off\n"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that a file was read into and a query asked of; only to be copied."""
    folder = tmp_path_factory.mktemp("audit")
    root, log = folder / "store", folder / "kernel.log"
    log.write_text(XID)
    assert main(["ingest", "kernel-log", str(log), "--cluster", "c", "--store", str(root)]) == 0
    assert (
        main(["sql", "SELECT count(*) FROM health_events WHERE node = 'n1'", "--store", str(root)])
        == 0
    )
    return root


@pytest.fixture
def store(built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A copy of it."""
    capsys.readouterr()
    return shutil.copytree(built, tmp_path / "store")


def asked(store: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["audit", "--store", str(store), *options]) == 0
    return capsys.readouterr().out


def test_commands_are_told_with_the_login(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query, ingest = json.loads(asked(store, capsys, "--format", "json"))
    assert list(query) == ["made_at", "person", "action", "target", "detail"]
    assert (query["person"], query["action"]) == (getpass.getuser(), "query")
    assert query["target"] == "SELECT count(*) FROM health_events WHERE node = '...'"
    assert (ingest["action"], ingest["target"].endswith("kernel.log")) == ("ingest", True)
    assert ingest["detail"]["source"] == "kernel-log"


def test_it_is_chosen_by_action_period_and_person(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = list(
        csv.DictReader(io.StringIO(asked(store, capsys, "--action", "query", "--format", "csv")))
    )
    assert [row["action"] for row in rows] == ["query"]
    assert json.loads(asked(store, capsys, "--to", "2020-01-01", "--format", "json")) == []
    mine = asked(store, capsys, "--person", getpass.getuser(), "--format", "json")
    assert len(json.loads(mine)) == 2


def test_a_report_is_told_with_its_files(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out")
    assert main(["report", "--as", "md", "--out", out, "--store", str(store)]) == 0
    told = Audit(store).entries(action="report")
    assert [entry.detail["files"] for entry in told] == [
        [path.name for path in (tmp_path / "out").iterdir()]
    ]


@pytest.mark.slow
def test_backup_ledger_and_a_query_that_fails_are_told(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backup = tmp_path / "kept"
    assert main(["backup", str(backup), "--store", str(store)]) == 0
    assert main(["ledger", "--store", str(store)]) == 0
    assert main(["sql", "SELECT nothing FROM nowhere", "--store", str(store)]) == 2
    assert main(["sql", " ", "--store", str(store)]) == 2
    capsys.readouterr()
    told = [(entry.action, entry.target) for entry in Audit(store).entries(limit=3)]
    assert told == [
        ("query", "SELECT nothing FROM nowhere"),
        ("build ledger", ""),
        ("backup", str(backup)),
    ]


def test_a_model_that_is_trained_is_told(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "labelled.csv"
    rows.write_text("text,label\n" + "disk full,storage\nlink down,network\n" * 10)
    command = ["classify", "train", str(rows), "--text", "text", "--label", "label"]
    assert main([*command, "--store", str(store)]) == 0
    (told,) = Audit(store).entries(action="train")
    assert (told.person, told.target) == (getpass.getuser(), str(rows))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--person", "eve"], "--person must be one of the store's, got 'eve'"),
        (["--action", "quer"], "did you mean 'query'?"),
        (["--from", "2026-01-02", "--to", "2026-01-02"], "--from must be before --to"),
    ],
)
def test_slips_are_refused(
    refused: Callable[..., str], store: Path, options: list[str], message: str
) -> None:
    assert message in refused("audit", "--store", store, *options)


def test_where_the_audit_cannot_be_written_a_query_is_answered_and_says_so(
    store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("data.state.WAIT_S", 0.05)
    other = Audit(store)
    with other._writing():
        assert main(["sql", "SELECT 7 AS n", "--store", str(store), "--format", "json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == [{"n": 7}]
    assert "the audit does not say it" in err
    assert err.count("\n") == 1
