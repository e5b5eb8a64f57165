"""faultline ingest: what became of every record, and files that cannot be read."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from app.actions import sources

if TYPE_CHECKING:
    from collections.abc import Callable

KEYS = {"ingest_id", "rows_read", "rows_kept", "rows_skipped", "rows_rejected",
        "skipped_by_reason", "rejected_by_reason", "tables"}  # fmt: skip
ACCOUNTS = """JobID|Cluster|State|Submit|Start|End|NNodes|AllocTRES|NodeList
1|c|COMPLETED|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-06T00:00:00|2|gres/gpu=16|n[1-2]
1.batch|c|COMPLETED|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-06T00:00:00|1||n1
2|c|NONSENSE|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-06T00:00:00|1|gres/gpu=8|n1
"""


@pytest.fixture
def accounts(tmp_path: Path) -> Path:
    path = tmp_path / "accounts.txt"
    path.write_text(ACCOUNTS, encoding="utf-8")
    return path


@pytest.mark.parametrize("source", ["sacct", "auto"])
def test_every_record_is_kept_skipped_or_rejected(
    faultline: Callable[..., Any], tmp_path: Path, accounts: Path, source: str
) -> None:
    said = faultline("ingest", source, accounts, "--store", tmp_path / "store")
    found = said.json
    assert said.code == 0
    assert set(found) >= KEYS
    assert (found["rows_read"], found["rows_kept"]) == (3, 1)
    assert (found["rows_skipped"], found["rows_rejected"]) == (1, 1)
    assert sum(found["skipped_by_reason"].values()) == 1
    assert found["rejected_by_reason"] == {"State is no Slurm state": 1}
    told = f"{accounts}: 1 of 3 records rejected: State is no Slurm state (1)"
    assert told in said.err.splitlines()
    assert found["tables"] == {"jobs": 1, "job_nodes": 2}
    assert found["clusters"] == ["c"]


def test_a_log_of_which_no_fault_can_be_read_is_refused_and_a_quiet_one_is_not(
    faultline: Callable[..., Any], tmp_path: Path
) -> None:
    quiet, without_host = tmp_path / "quiet.txt", tmp_path / "dmesg.txt"
    quiet.write_text("[Mon Nov 16 09:00:00 2026] usb 1-1: new device\n", encoding="utf-8")
    fault = "[Mon Nov 16 08:00:00 2026] NVRM: Xid (PCI:0000:3b:00): 79, GPU fell off\n"
    without_host.write_text(quiet.read_text("utf-8") + 20 * fault, encoding="utf-8")
    said = faultline("ingest", "kernel-log", without_host, quiet, "--store", tmp_path / "store")
    assert said.code == 2
    assert said.json["rows_skipped"] == said.json["rows_read"] == 1, "of the quiet one alone"
    assert said.err == (
        f"faultline ingest: {without_host}: 20 of 21 records rejected: no host on the line: pass "
        "--node (20): none is kept and nothing was stored; the first is of line 2\n"
    )
    assert faultline("ingest", "kernel-log", quiet, "--store", tmp_path / "store").code == 0


def test_the_same_file_again_is_kept_and_changes_nothing(
    faultline: Callable[..., Any], tmp_path: Path, accounts: Path
) -> None:
    given = ("ingest", "sacct", accounts, "--store", tmp_path / "store")
    first, again = faultline(*given).json, faultline(*given).json
    assert again["rows_kept"] == first["rows_kept"] == 1
    assert set(again["tables"].values()) == {0}
    assert again["ingest_id"] != first["ingest_id"]


def test_several_files_are_summed_and_listed(
    faultline: Callable[..., Any], tmp_path: Path, accounts: Path
) -> None:
    other = tmp_path / "other.txt"
    other.write_text(ACCOUNTS.replace("1|c", "7|c"), encoding="utf-8")
    found = faultline("ingest", "sacct", accounts, other, "--store", tmp_path / "store").json
    assert (found["rows_read"], found["tables"]["jobs"]) == (6, 2)
    assert [file["path"] for file in found["files"]] == [str(accounts), str(other)]


def test_a_file_that_cannot_be_read_does_not_hold_up_the_others(
    faultline: Callable[..., Any], tmp_path: Path, accounts: Path
) -> None:
    said = faultline("ingest", "sacct", tmp_path / "none.txt", accounts,
                     "--store", tmp_path / "store")  # fmt: skip
    assert said.code == 2
    assert said.json["rows_kept"] == 1
    assert [line for line in said.err.splitlines() if "none.txt" in line] == [
        f"faultline ingest: {tmp_path / 'none.txt'}: no such file: check the path"
    ]


def test_options_say_what_the_file_does_not(faultline: Callable[..., Any], tmp_path: Path) -> None:
    path, root = tmp_path / "bare.txt", tmp_path / "store"
    path.write_text(
        "9;FAILED;2026-01-05T00:00:00;2026-01-05T06:00:00;2026-01-05T07:00:00\n", encoding="utf-8"
    )
    columns = "JobID,State,Submit,Start,End"
    said = faultline("ingest", "sacct", path, "--store", root, "--cluster", "mine", "--timezone",
                     "Europe/Berlin", "--columns", columns, "--delimiter", ";")  # fmt: skip
    assert said.json["clusters"] == ["mine"]
    (row,) = faultline("sql", "SELECT cluster, start_at FROM jobs", "--store", root).json
    assert row == {"cluster": "mine", "start_at": "2026-01-05T05:00:00+00:00"}


def test_standard_input_is_a_file(
    faultline: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAULTLINE_STORE", str(tmp_path / "store"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(ACCOUNTS.encode())))
    said = faultline("ingest", "sacct", "-")
    assert said.code == 0
    assert all(line.startswith("-: ") for line in said.err.splitlines())
    assert said.json["rows_kept"] == 1
    assert (tmp_path / "store" / "CURRENT").is_file()


@pytest.mark.parametrize("form", ["json", "csv", "table"])
def test_the_sources_are_listed(faultline: Callable[..., Any], form: str) -> None:
    said = faultline("ingest", "--list", "--format", form)
    assert said.code == 0
    if form == "json":
        assert [row["source"] for row in said.json] == list(sources())
    elif form == "csv":
        header, *rows = csv.reader(io.StringIO(said.out))
        assert header == ["source", "reads"]
        assert [row[0] for row in rows] == list(sources())
    else:
        assert all(f"\n{name} " in said.out for name in sources())


def test_csv_and_table_hold_what_json_does(
    faultline: Callable[..., Any], tmp_path: Path, accounts: Path
) -> None:
    given = ("ingest", "sacct", accounts, "--store", tmp_path / "store")
    found = faultline(*given).json
    (row,) = csv.DictReader(io.StringIO(faultline(*given, "--format", "csv").out))
    assert set(row) == set(found)
    assert row["rows_read"] == "3"
    assert json.loads(row["skipped_by_reason"]) == found["skipped_by_reason"]
    assert "rows_rejected       1\n" in faultline(*given, "--format", "table").out


def test_a_demo_store_takes_no_real_data(
    refused: Callable[..., str], demo_store: Path, accounts: Path
) -> None:
    before = hashlib.sha256((demo_store / "CURRENT").read_bytes()).hexdigest()
    told = refused("ingest", "sacct", accounts, "--store", demo_store)
    assert "holds the synthetic demo" in told
    assert hashlib.sha256((demo_store / "CURRENT").read_bytes()).hexdigest() == before


REFUSED = {
    "nothing": ([], "name a SOURCE and a FILE"),
    "no file": (["sacct"], "name a SOURCE and a FILE"),
    "a source that is none": (["cray", "{file}"], "source 'cray' is unknown: choose one of sacct"),
    "a file that is not there": (["sacct", "{folder}/none.txt"], "none.txt"),
    "a folder": (["sacct", "{folder}"], "{folder}"),
    "an empty file": (["auto", "{empty}"], "empty.txt"),
    "a cut archive": (["sacct", "{cut}"], "data ends early or is broken ("),
    "a tar archive": (["auto", "{tar}"], "is a tar archive: unpack it and give the files in it"),
    "a binary file": (["sacct", "{binary}"], "binary.txt"),
    "no format known": (["auto", "{prose}"], "is of no format known: name"),
    "a zone that is none": (["sacct", "{file}", "--timezone", "Mars"], "zone 'Mars' is unknown"),
    "no time": (["kernel-log", "{file}", "--boot-at", "noon"], "'noon' is no ISO time"),
    "no year": (["kernel-log", "{file}", "--year", "now"], "no whole number"),
    "no mapping": (["failure-log", "{file}", "--mapping", "mine"], "mine"),
    "a file as store": (["sacct", "{file}", "--store", "{file}"], "is a file: name a folder"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_read_is_refused_and_the_store_untouched(
    refused: Callable[..., str], tmp_path: Path, accounts: Path, case: tuple[list[str], str]
) -> None:
    places = {"file": accounts, "folder": tmp_path}
    for name, content in (("empty", b""), ("binary", bytes(range(256)) * 64),
                          ("cut", gzip.compress(ACCOUNTS.encode())[:-6]),
                          ("tar", bytes(257) + b"ustar" + bytes(250) + ACCOUNTS.encode()),
                          ("prose", b"It was a dark and stormy night.\n" * 9)):  # fmt: skip
        places[name] = tmp_path / f"{name}.txt"
        places[name].write_bytes(content)
    options, message = ([part.format(**places) for part in case[0]], case[1].format(**places))
    store = [] if "--store" in options else ["--store", tmp_path / "store"]
    assert message in refused("ingest", *options, *store)
    assert not (tmp_path / "store" / "CURRENT").exists()


def test_of_a_cut_archive_is_read_what_came_before_and_told_how_much(
    faultline: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "accounts.gz").write_bytes(gzip.compress(ACCOUNTS.encode())[:-6])
    said = faultline("ingest", "sacct", tmp_path / "accounts.gz", "--partial", "--store",
                     tmp_path / "store")  # fmt: skip
    assert (said.code, said.json["rows_kept"]) == (0, 1)
    assert f": {len(ACCOUNTS)} bytes before it were read" in said.err


def test_the_accounts_of_xdmod_add_up(
    faultline: Callable[..., Any], shared: Path, tmp_path: Path
) -> None:
    for path in sorted((shared / "slurm" / "xdmod").glob("*.log")):
        root = tmp_path / path.stem
        found = faultline("ingest", "sacct", path, "--preset", "xdmod", "--store", root).json
        parts = ("rows_kept", "rows_skipped", "rows_rejected")
        assert found["rows_read"] == sum(found[part] for part in parts) > 0
        by_state = faultline("sql", "SELECT count(*) AS n FROM jobs", "--store", root).json
        assert by_state[0]["n"] == found["tables"]["jobs"] <= found["rows_kept"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["sacct", "--preset", "xdmod", "--columns", "jobid"], "give one of them"),
        (["sacct", "--preset", "slurm"], "--preset 'slurm' is unknown: choose one of xdmod, acme"),
        (["auto", "--preset", "xdmod"], "--preset xdmod names columns of sacct, not of auto"),
        (["sacct", "--preset", "acme"], "--preset acme names columns of job-table, not of sacct"),
        (["job-table", "--preset", "acme", "--mapping", "x"], "give one of them"),
    ],
)
def test_a_preset_that_names_no_columns_is_refused(
    faultline: Callable[..., Any], tmp_path: Path, arguments: list[str], told: str
) -> None:
    said = faultline("ingest", *arguments, tmp_path / "a.txt", "--store", tmp_path / "store")
    assert (said.code, told in said.err) == (2, True)


def test_an_inventory_is_of_the_time_that_is_stated_and_recognised_without_its_name(
    faultline: Callable[..., Any], tmp_path: Path
) -> None:
    nodes = tmp_path / "nodes.txt"
    nodes.write_text("NodeName=g1 Arch=x86_64\n   Gres=gpu:a100:8 State=IDLE\n", encoding="utf-8")
    store = tmp_path / "store"
    said = faultline("ingest", "auto", nodes, "--at", "2024-03-01T12:00:00+01:00", "--store", store)
    assert (said.code, said.err, said.json["source"]) == (0, "", "scontrol-nodes")
    assert said.json["tables"] == {"node_inventory": 1}
    assert faultline(
        "ingest", "auto", nodes, "--at", "2024-03-01T11:00:00Z", "--store", store
    ).json["tables"] == {"node_inventory": 0}


HEADERLESS = {
    "sacct": (
        "7|7|ann|COMPLETED|2026-01-05T09:00:00|2026-01-05T12:00:00\n",
        "name sacct with --columns",
    ),
    "alibaba": ("j1,worker,2,Terminated,100.0,200.0,600,30,100,T4\n", "--preset alibaba-pai"),
    "another table": ("j1,worker,2,fine,100.0,200.0,600,30,100,T4\n", "is of no format known"),
}


@pytest.mark.parametrize("case", HEADERLESS.values(), ids=HEADERLESS)
def test_of_a_file_without_a_header_the_preset_to_try_is_named(
    refused: Callable[..., str], tmp_path: Path, case: tuple[str, str]
) -> None:
    text, told = case
    (tmp_path / "f.txt").write_text(text)
    assert told in refused("ingest", "auto", tmp_path / "f.txt", "--store", tmp_path / "store")


MISSPELT = {
    "a command": (["legder"], "did you mean ledger: see faultline --help"),
    "an option": (["mttf", "--gsp", "8"], "did you mean --gpus: see faultline mttf --help"),
    "a value": (["mttf", "--format", "jsn"], "did you mean json"),
    "a source": (["ingest", "kernal-log", __file__], "did you mean kernel-log?"),
    "nothing near": (["qqqq"], "choose from 'actions'"),
}


@pytest.mark.parametrize("case", MISSPELT.values(), ids=MISSPELT)
def test_what_is_misspelt_is_answered_with_the_nearest(
    refused: Callable[..., str], tmp_path: Path, case: tuple[list[str], str]
) -> None:
    given, told = case
    store = ["--store", str(tmp_path / "store")] if given[0] == "ingest" else []
    assert told in refused(*given, *store)
