"""Files of every source on their way into a store."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import runpy
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from app.actions import ingest_files, known_options, sources
from app.cli import main
from app.widgets import export_help
from data.current import read_current
from data.errors import DataError, SourceError
from data.ingest import IngestResult, Options
from data.ingest import readers as families
from data.ingest.readers import known_readers
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = Path(__file__).resolve().parents[3] / "docs"
APART = {"ingests", "rejected_rows", "store_meta"}
AT = "2024-03-01T10:00:00"
SACCT = f"""\
JobID|State|Submit|Start|End|NNodes|AllocTRES|NodeList
1|NODE_FAIL|{AT}|{AT}|2024-03-01T12:00:00|2|gres/gpu=16|n[1-2]
2|FAILED|{AT}|{AT}|2024-03-01T12:30:00|1|gres/gpu=8|n3
2.batch|FAILED|{AT}|{AT}|2024-03-01T12:30:00|1||n3
3|RUNNING|{AT}|{AT}|Unknown|1|gres/gpu=8|n4
"""
FILES = {
    "sacct": SACCT,
    "sacctmgr-events": "NodeName|TimeStart|TimeEnd|State|Reason|User\n"
    "n1|2024-03-01T12:00:00|Unknown|DOWN*|Not responding|slurm(0)\n"
    "n9|2024-03-01T12:00:00|2024-03-01T13:00:00|MAINT|maintenance|root(0)\n",
    "kernel-log": "2024-03-01T12:29:00+00:00 n3 kernel: NVRM: Xid (PCI:0000:3b:00): 79, GPU has "
    "fallen off the bus.\n" * 2,
    "gcm-health": '{"node": "n4", "health_check": "check_nvidia_smi", "result": 2, '
    '"end_time": 1709294400.0, "_msg": "lost"}\n' * 2,
}
LATER = {
    "sacct": SACCT.replace("RUNNING", "COMPLETED").replace("Unknown", "2024-03-01T14:00:00"),
    "sacctmgr-events": FILES["sacctmgr-events"].replace("Unknown", "2024-03-02T00:00:00"),
}


def ingested(
    folder: Path, content: str | bytes, source: str = "sacct", **options: Any
) -> IngestResult:
    """What became of one file; the store lies beside it."""
    path = folder / "input.txt"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    (result,), errors = ingest_files(folder / "store", source, [str(path)], Options(**options))
    assert errors == []
    return result


@pytest.fixture(scope="module")
def sacct_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of three attempts; only to be copied."""
    folder = tmp_path_factory.mktemp("sacct")
    ingested(folder, SACCT)
    return folder / "store"


def rows(root: Path, sql: str) -> list[tuple[Any, ...]]:
    store = Store.open(root)
    try:
        return store.rows(sql)
    finally:
        store.close()


def assert_same_content(one: Path, other: Path) -> None:
    """Every table but those of the ingests themselves holds the same rows, as often."""
    with duckdb.connect() as connection:
        for name, root in (("one", one), ("other", other)):
            current = read_current(root)
            assert current is not None
            connection.execute(f"ATTACH '{root / current.file}' AS {name} (READ_ONLY)")
        names = connection.execute(
            "SELECT table_name FROM duckdb_tables() WHERE database_name = 'one'"
        ).fetchall()
        for (table,) in names:
            if table not in APART:
                for left, right in (("one", "other"), ("other", "one")):
                    query = f"FROM {left}.{table} EXCEPT ALL FROM {right}.{table}"
                    assert connection.execute(query).fetchall() == [], table


def test_what_became_of_the_records_is_told_and_stored(tmp_path: Path) -> None:
    content = SACCT + f"4|FINISHED|{AT}|{AT}|{AT}|1||n1\n5|torn\n"
    result = ingested(tmp_path, content, timezone="UTC")
    assert (result.rows_read, result.rows_kept) == (6, 3)
    assert (result.rows_skipped, result.rows_rejected) == (1, 2)
    assert result.skipped_by_reason == {"job_step": 1}
    assert result.rejected_by_reason == {"State is no Slurm state": 1, "too few fields": 1}
    assert result.tables == {"jobs": 3, "job_nodes": 4}
    assert (result.ingest_id, result.source, result.clusters) == ("1.1", "sacct", ("cluster",))
    stored = (
        "SELECT ingest_id, rows_read, rows_kept, rows_skipped, rows_rejected, sha256 FROM ingests"
    )
    assert rows(tmp_path / "store", stored) == [("1.1", 6, 3, 1, 2, result.sha256)]
    rejected = "SELECT ingest_id, line_no, reason, raw FROM rejected_rows ORDER BY line_no"
    assert rows(tmp_path / "store", rejected) == [
        ("1.1", 6, "State is no Slurm state", f"4|FINISHED|{AT}|{AT}|{AT}|1||n1"),
        ("1.1", 7, "too few fields", "5|torn"),
    ]


def test_ingests_are_numbered_within_the_store(tmp_path: Path) -> None:
    first = tmp_path / "input.txt"
    first.write_text(SACCT, encoding="utf-8")
    results = [
        result
        for names in ([str(first), str(first)], [str(first)])
        for result in ingest_files(tmp_path / "store", "sacct", names, Options())[0]
    ]
    assert [result.ingest_id for result in results] == ["1.1", "1.2", "2.3"]
    assert [sum(result.tables.values()) for result in results] == [7, 0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("source", FILES)
def test_the_same_file_twice_changes_nothing(tmp_path: Path, source: str) -> None:
    first = ingested(tmp_path, FILES[source], source)
    shutil.copytree(tmp_path / "store", tmp_path / "once")
    again = [ingested(tmp_path, FILES[source], source) for _ in range(2)]
    assert sum(first.tables.values()) > 0
    assert not any(sum(result.tables.values()) for result in again)
    assert {result.rows_kept for result in again} == {first.rows_kept}
    assert_same_content(tmp_path / "once", tmp_path / "store")


@pytest.mark.slow
def test_sources_in_any_order_give_the_same_store(tmp_path: Path) -> None:
    pieces = [*FILES.items(), *LATER.items()]
    orders = [pieces, pieces[::-1], pieces[1::2] + pieces[::2]]
    for number, order in enumerate(orders):
        folder = tmp_path / str(number)
        folder.mkdir()
        for source, content in order:
            ingested(folder, content, source)
    stores = [tmp_path / str(number) / "store" for number in range(len(orders))]
    for one, other in itertools.pairwise(stores):
        assert_same_content(one, other)
    assert rows(stores[0], "SELECT count(*) FROM health_events") == [(4,)]
    assert rows(stores[0], "SELECT attempt_key IS NULL, node FROM failures ORDER BY node") == [
        (False, "n3"),
        (False, None),
    ]


@pytest.mark.parametrize("source", FILES)
def test_the_format_is_recognised_by_its_beginning(tmp_path: Path, source: str) -> None:
    for mark in ("", "\ufeff"):
        assert ingested(tmp_path, mark + FILES[source], "auto").source == source


@pytest.mark.parametrize("content", ["hello\nworld\n", "a,b\n1,2\n", "[1, 2]\n"])
def test_a_format_that_is_not_known_is_told(tmp_path: Path, content: str) -> None:
    message = r"input\.txt: is of no format known: name one of sacct, "
    with pytest.raises(DataError, match=message):
        ingested(tmp_path, content, "auto")


def test_a_source_that_does_not_exist_is_told(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"source 'scat' is unknown: choose one of sacct, .*or auto"
    ):
        ingested(tmp_path, SACCT, "scat")
    assert read_current(tmp_path / "store") is None


def test_every_reader_has_its_line_of_help() -> None:
    for name, reader in known_readers().items():
        assert (reader.name, "\n" in reader.help) == (name, False)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty: nothing to read"),
        (b"\x00\x01\x02" * 100, "is binary, not text"),
        (b"JobID|User\n1|ada\n", "column State is missing"),
        (SACCT.encode().replace(b"|", b";"), "no header with JobID between '\\|'"),
        (
            b"JobID|State\nx|y\nz\n",
            r"2 of 2 records rejected: .*(JobID is no job id \(1\)|too few fields \(1\)).*line 2$",
        ),
        (gzip.compress(b"x" * 99, mtime=0)[:8], "holds nothing"),
    ],
)
def test_where_nothing_can_be_read_the_store_is_untouched(
    sacct_store: Path, tmp_path: Path, content: bytes, message: str
) -> None:
    shutil.copytree(sacct_store, tmp_path / "store")
    before = (tmp_path / "store/CURRENT").read_bytes()
    with pytest.raises(DataError, match=message) as refused:
        ingested(tmp_path, content)
    assert "\n" not in str(refused.value)
    assert (tmp_path / "store/CURRENT").read_bytes() == before
    assert len(list((tmp_path / "store").glob("warehouse-*"))) == 1


def test_readers_are_found_and_listed_by_their_place() -> None:
    assert list(known_readers()) == [
        "sacct", "reduced-jobs", "sacct-json", "jobcomp", "pbs", "lsf", "sge", "job-table", "k8s-pods",
        "k8s-workloads", "philly", "sacctmgr-events",
        "kernel-log", "scontrol-nodes", "k8s-nodes", "gcm-health", "sinfo", "ras-log", "ipmi-sel",
        "redfish", "nvsentinel", "gpud", "reduced-events", "k8s-events", "failure-log", "node-inventory", "tickets",
        "node-facts", "job-log", "loki", "elasticsearch", "dcgm",
        "infiniband", "prometheus-json", "reduced-metrics", "training-metrics", "training-json", "wandb-chart", "mlflow",
        "tensorboard", "megatron-golden", "mlperf", "training-lines", "straggler-trace",
        "flight-recorder",
    ]  # fmt: skip


TOY = """
import pandas as pd
from data.ingest.reader import Batch, Reader

def read(source, options, connection):
    lines = source.path.read_text().splitlines()
    rows = pd.DataFrame({"ticket_id": lines, "opened_at": pd.Timestamp("2026-01-05", tz="UTC")})
    return Batch({"tickets": rows.assign(cluster="c")}, rows_kept=len(rows))

READER = Reader(
    "toy", "tickets of a toy", export="toy --all", reads="a ticket a line", fills=("tickets",),
    options=("year",), lacks={"tickets": {("closed_at",): "when it ended stays unknown"}},
    sniff=lambda head: head.startswith("toy"), read=read,
)
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A reader that is one file in a family, and nothing else."""
    family = tmp_path / "families" / "toys"
    family.mkdir(parents=True)
    (family / "__init__.py").touch()
    (family / "toy.py").write_text(TOY, encoding="utf-8")
    monkeypatch.setattr(families, "__path__", [*families.__path__, str(family.parent)])
    known_readers.cache_clear()
    yield tmp_path
    known_readers.cache_clear()
    for name in ("data.ingest.readers.toys", "data.ingest.readers.toys.toy"):
        sys.modules.pop(name, None)


def test_a_reader_is_one_file(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert [*known_readers()][-1] == "toy"  # without a place
    assert sources()["toy"].help == "tickets of a toy: toy --all"  # what help and the upload list
    assert export_help.commands("toy") == ("toy --all", "faultline ingest toy FILE")
    assert known_options("toy") == {"year"}
    assert main(["ingest", "--list", "--format", "csv"]) == 0
    assert capsys.readouterr().out.endswith("toy,tickets of a toy: toy --all\n")
    make = runpy.run_path(str(DOCS / "make.py"))
    assert "| `toy` | a ticket a line |" in make["sources"]()
    (toy / "toy.txt").write_text("toy 1\n", encoding="utf-8")
    ((result,), _) = ingest_files(toy / "store", "auto", [str(toy / "toy.txt")], Options(node="n"))
    assert result.source == "toy"
    assert "no closed_at in any of 1 rows: when it ended stays unknown" in result.notices
    assert any(text.startswith("--node says nothing to toy") for text in result.notices)


def test_a_bad_file_does_not_stop_the_others(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.txt", tmp_path / "bad.txt"
    good.write_text(SACCT, encoding="utf-8")
    bad.write_text("nothing\n", encoding="utf-8")
    names = [str(bad), str(good), str(tmp_path / "absent.txt")]
    results, errors = ingest_files(tmp_path / "store", "sacct", names, Options())
    assert [result.path for result in results] == [str(good)]
    assert len(errors) == 2
    assert errors[0].startswith(str(bad))
    assert errors[1].endswith("no such file: check the path")


@pytest.mark.parametrize(
    ("content", "notice"),
    [
        (SACCT.encode() + b"\n" + bytes(7) + b"\n", "7 NUL bytes: read as blanks"),
        (SACCT.encode() + b"7|FAILED|||||\xff|\n", "1 bytes are not UTF-8: replaced by U+FFFD"),
        (
            SACCT.encode() + b"8|FAILED||||||n[1\n",
            "node lists that cannot be expanded, kept as text: 1",
        ),
        (SACCT.split("\n", 1)[0].encode(), "holds no record"),
        (SACCT.encode(), "times without a zone, read as UTC (pass --timezone)"),
    ],
)
def test_what_had_to_be_assumed_is_said(tmp_path: Path, content: bytes, notice: str) -> None:
    result = ingested(tmp_path, content)
    assert notice in result.notices
    ((stored,),) = rows(tmp_path / "store", "SELECT notices FROM ingests")
    assert json.loads(stored) == list(result.notices)


def test_a_cut_archive_is_refused_or_read_up_to_the_cut(tmp_path: Path) -> None:
    lines = [f"{job}|COMPLETED|{AT}|{AT}|{AT}|1|gres/gpu=8|n{job * 7919}" for job in range(20_000)]
    packed = gzip.compress("\n".join([SACCT.split("\n", 1)[0], *lines]).encode())
    with pytest.raises(DataError, match=r"copy it again, or read what came before with --partial"):
        ingested(tmp_path, packed[: len(packed) // 2], partial=False)
    assert read_current(tmp_path / "store") is None
    result = ingested(tmp_path, packed[: len(packed) // 2], partial=True)
    assert 1_000 < result.rows_kept < len(lines)
    assert any("gzip data ends early or is broken" in notice for notice in result.notices)


def test_standard_input_is_ingested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SACCT.encode())))
    (result,), _ = ingest_files(tmp_path / "store", "sacct", ["-"], Options())
    assert (result.path, result.rows_kept) == ("-", 3)


def test_an_error_of_a_reader_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds nothing"):
        ingested(tmp_path, gzip.compress(b""))
    assert not list((tmp_path / "store").glob("building-*"))
    assert not (tmp_path / "store/scratch").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one-multiline", "multiple-multiline", "fake-line-break"])
def test_the_fixtures_of_gcm_give_the_store_of_their_expected_files(
    tmp_path: Path, shared_data: Path, name: str
) -> None:
    for suffix in ("", "-expected"):
        path = shared_data / f"slurm/gcm/sample-sacct-{name}{suffix}.txt"
        ingest_files(tmp_path / suffix / "store", "sacct", [str(path)], Options(delimiter="|#"))
    assert_same_content(tmp_path / "store", tmp_path / "-expected/store")
    assert rows(tmp_path / "store", "SELECT count(*) > 0 FROM jobs") == [(True,)]


@pytest.mark.slow
def test_the_states_of_xdmod_are_stored_as_a_plain_count_has_them(
    tmp_path: Path, shared_data: Path, xdmod_columns: tuple[str, ...]
) -> None:
    path = shared_data / "slurm/xdmod/pozidriv.log"
    options = Options(columns=xdmod_columns, timezone="America/New_York")
    (result,), _ = ingest_files(tmp_path / "store", "sacct", [str(path)], options)
    assert result.rows_read == result.rows_kept + result.rows_skipped + result.rows_rejected
    lines = path.read_text(encoding="utf-8").splitlines()
    assert result.rows_read == len(lines)
    plain = Counter(line.split("|")[xdmod_columns.index("state")].split(" ")[0] for line in lines)
    stored = rows(tmp_path / "store", "SELECT state, count(*) FROM jobs GROUP BY ALL")
    assert dict(stored) == plain
    (again,), _ = ingest_files(tmp_path / "store", "sacct", [str(path)], options)
    assert set(again.tables.values()) == {0}


def test_a_refusal_is_a_source_error_where_one_file_was_named(tmp_path: Path) -> None:
    assert issubclass(SourceError, DataError)
    with pytest.raises(DataError, match="is a folder, not a file: name the files in it"):
        ingest_files(tmp_path / "store", "sacct", [str(tmp_path)], Options())


@pytest.mark.parametrize("source", ["sacctmgr-events", "kernel-log", "gcm-health"])
def test_parquet_is_refused_where_text_is_read(tmp_path: Path, source: str) -> None:
    path = tmp_path / "log.parquet"
    path.write_bytes(b"PAR1" + bytes(range(256)) * 16 + b"PAR1")
    with pytest.raises(DataError, match=r"is Parquet, .* reads text: give the log itself"):
        ingest_files(tmp_path / "store", source, [str(path)], Options())
    assert not (tmp_path / "store").exists()


def test_a_file_of_another_kind_leaves_the_store_untouched(tmp_path: Path) -> None:
    (tmp_path / "sacct.txt").write_text(SACCT, encoding="utf-8")
    with pytest.raises(DataError, match="is no kernel log"):
        ingest_files(tmp_path / "store", "kernel-log", [str(tmp_path / "sacct.txt")], Options())
    assert not (tmp_path / "store").exists()
