"""The content of a store depends on the set of records, not on files or their order."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.actions import Options, ingest_files
from data.store import Store

HEADER = "JobID|Cluster|SLUID|State|Submit|Start|End|NNodes|AllocTRES|NodeList|FailedNode"
APART = ("ingests", "rejected_rows", "store_meta")
BEGIN = datetime(2024, 1, 1, tzinfo=UTC)


def _time(hours: int | None) -> str:
    return "Unknown" if hours is None else f"{BEGIN + timedelta(hours=hours):%Y-%m-%dT%H:%M:%S}"


@st.composite
def _record(draw: st.DrawFn) -> str:
    """A record of one of few jobs, so that attempts, updates and requeues meet."""
    job, submit = draw(st.integers(1, 3)), draw(st.integers(0, 1))
    state = draw(st.sampled_from(["PENDING", "RUNNING", "COMPLETED", "FAILED", "NODE_FAIL"]))
    start = None if state == "PENDING" else 2 + draw(st.integers(0, 1))
    end = None if state in ("PENDING", "RUNNING") else 5 + draw(st.integers(0, 2))
    sluid = draw(st.sampled_from(["", f"s{job}{submit}{start}"]))
    nodes, listed = draw(st.sampled_from([("1", "n1"), ("2", "n[1-2]"), ("2", "n[2-3]")]))
    failed = draw(st.sampled_from(["", "n2"]))
    return "|".join(
        [str(job), "a", sluid, state, _time(submit), _time(start), _time(end), nodes,
         f"gres/gpu={8 * int(nodes)}", listed, failed]
    )  # fmt: skip


def _content(root: Path) -> dict[str, list[tuple[object, ...]]]:
    """All rows of all tables that count, sorted."""
    store = Store.open(root)
    try:
        names = [row[0] for row in store.rows("SELECT table_name FROM duckdb_tables()")]
        return {
            name: store.rows(f"SELECT * FROM {name} ORDER BY ALL")
            for name in names
            if name not in APART
        }
    finally:
        store.close()


def _ingested(folder: Path, files: list[list[str]]) -> dict[str, list[tuple[object, ...]]]:
    """The content after reading files of these records one after another."""
    root = folder / "store"
    for number, records in enumerate(files):
        path = folder / f"{number}.txt"
        path.write_text("\n".join([HEADER, *records]) + "\n", encoding="utf-8")
        ingest_files(root, "sacct", [str(path)], Options())
    return _content(root)


@pytest.mark.slow
@settings(
    max_examples=settings.default.max_examples // 3, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
@given(st.lists(_record(), min_size=2, max_size=12), st.randoms(use_true_random=False))
def test_order_split_and_overlap_of_files_do_not_matter(records: list[str], random: object) -> None:
    shuffled = list(records)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    cut = len(records) // 2
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        whole = _ingested(Path(one), [records])
        parts = _ingested(Path(other), [shuffled[cut:], shuffled[: cut + 1], shuffled[cut:]])
    assert whole == parts


def test_the_same_file_twice_changes_nothing(tmp_path: Path) -> None:
    record = f"7|a||COMPLETED|{_time(0)}|{_time(1)}|{_time(2)}|1|gres/gpu=8|n1|"
    path = tmp_path / "sacct.txt"
    path.write_text(f"{HEADER}\n{record}\n", encoding="utf-8")
    root = tmp_path / "store"
    (first,), _ = ingest_files(root, "sacct", [str(path)], Options())
    before = _content(root)
    (second,), _ = ingest_files(root, "sacct", [str(path)], Options())
    assert first.tables == {"jobs": 1, "job_nodes": 1}
    assert set(second.tables.values()) == {0}
    assert second.rows_kept == 1
    assert _content(root) == before


def test_a_final_record_wins_over_pending_and_running_ones(tmp_path: Path) -> None:
    lines = [
        f"7|a||PENDING|{_time(0)}|Unknown|Unknown|1|||",
        f"7|a||RUNNING|{_time(0)}|{_time(1)}|Unknown|1|gres/gpu=8|n1|",
        f"7|a||NODE_FAIL|{_time(0)}|{_time(1)}|{_time(2)}|1|gres/gpu=8|n1|n1",
        f"7|a||RUNNING|{_time(3)}|{_time(4)}|Unknown|1|gres/gpu=8|n2|",
    ]
    content = _ingested(tmp_path, [[line] for line in reversed(lines)])
    store = Store.open(tmp_path / "store")
    rows = store.rows("SELECT state, attempt FROM jobs ORDER BY attempt")
    store.close()
    assert rows == [("NODE_FAIL", 1), ("RUNNING", 2)]
    assert len(content["failures"]) == 1
