"""Flight-recorder dumps and stacks as rows: all forms, twice, packed, broken, and of no rank."""

from __future__ import annotations

import gzip
import json
import pickle
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from analytics.training.hangs.dump import GroupStatus, RankDump
from analytics.training.hangs.verdict import hang
from app.actions import Options, ingest_files
from data.errors import DataError, SourceError
from data.ingest.readers.training.flight_dump import flight_dump, rank_of_name
from data.ingest.readers.training.flight_recorder import sniff
from data.ingest.readers.training.rank_dumps import read_all
from data.ingest.readers.training.rank_stacks import is_stack, rank_stacks
from data.queries import hangs
from data.store import Store

if TYPE_CHECKING:
    from pathlib import Path

ENTRY = {
    "record_id": 4, "pg_id": 9, "process_group": ("2", "TENSOR_MODEL_PARALLEL_GROUP"),
    "collective_seq_id": 5, "p2p_seq_id": 0, "op_id": 5, "profiling_name": "nccl:all_reduce",
    "time_created_ns": 1_760_000_000_000_000_000, "input_sizes": [[4, 8]],
    "input_dtypes": ["BFloat16"], "output_sizes": [[4, 8]], "output_dtypes": ["BFloat16"],
    "state": "started", "time_discovered_started_ns": 1_760_000_000_000_000_001,
    "time_discovered_completed_ns": None, "retired": False, "timeout_ms": 600000, "is_p2p": False,
}  # fmt: skip
DUMP: dict[str, Any] = {
    "version": "2.9", "nccl_version": "2.27.3", "host_name": "n7", "rank": 3,
    "pg_config": {"2": {"name": "2", "desc": "TENSOR_MODEL_PARALLEL_GROUP", "ranks": "[3, 7]"}},
    "pg_status": {"9": {"last_enqueued_collective": 5, "last_started_collective": 5,
                        "last_completed_collective": 4}, "77": {}},
    "entries": [ENTRY],
}  # fmt: skip
PY_SPY = """Process 4242: python train.py --rank 3 --lr 0.1
Python v3.11.4 (/usr/bin/python3.11)

Thread 4300 (idle): "Thread-1"
    wait (threading.py:320)
Thread 4242 (active): "MainThread"
    all_reduce (torch/distributed/distributed_c10d.py:2501)
    step (train.py:88)
        Arguments:
            self: <Trainer at 0x7f>
    <module> (train.py:120)
"""
FAULT = """Fatal Python error: Aborted

Thread 0x00007f12 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 320 in wait

Current thread 0x00007f34 (most recent call first):
  File "/src/loader.py", line 12 in __next__
  File "/src/train.py", line 80 in main
"""


def test_a_dump_is_what_one_rank_enqueued() -> None:
    found = flight_dump(DUMP, "x").dump
    (entry,), (group,) = found.entries, found.groups
    assert (found.rank, found.host, found.version) == (3, "n7", "2.9")
    assert (group.desc, group.ranks) == ("TENSOR_MODEL_PARALLEL_GROUP", (3, 7))
    assert (entry.group, entry.seq, entry.state, entry.input_sizes) == (
        "2", 5, "started", ((4, 8),),
    )  # fmt: skip
    assert (found.status["2"].enqueued, found.status["2"].completed) == (5, 4)
    assert list(found.status) == ["2"]


def test_older_versions_lack_keys() -> None:
    bare = {"entries": [{"pg_id": 0, "seq_id": 4, "profiling_name": "nccl:broadcast",
                         "state": "scheduled"}]}  # fmt: skip
    found = flight_dump(bare, "dumps/nccl_trace_rank_12").dump
    (entry,) = found.entries
    assert (found.rank, entry.seq, entry.p2p, entry.input_sizes) == (12, 4, False, None)
    assert found.groups[0].ranks is None


def test_a_send_is_told_by_its_name_where_the_key_is_missing() -> None:
    entry = {**ENTRY, "profiling_name": "nccl:send 0->1", "p2p_seq_id": 8}
    del entry["is_p2p"]
    found = flight_dump({**DUMP, "entries": [entry]}, "x").dump.entries[0]
    assert (found.p2p, found.seq) == (True, 8)


def test_entries_that_cannot_be_read_are_counted() -> None:
    broken = [7, {**ENTRY, "state": "lost"}, {**ENTRY, "collective_seq_id": "x"},
              {**ENTRY, "pg_id": None, "process_group": None}]  # fmt: skip
    found = flight_dump({**DUMP, "entries": [ENTRY, *broken]}, "x")
    assert (found.n_read, len(found.dump.entries), dict(found.rejected)) == (5, 1, {
        "entry is no object": 1, "state is none of scheduled, started, completed": 1,
        "entry has no sequence number": 1, "entry names no process group": 1,
    })  # fmt: skip


def test_json_of_pytorch_has_0_for_no_time_and_numbers_as_text() -> None:
    """Keys and values as `dump_json` of `FlightRecorderDetail.hpp` writes them."""
    entry = {**ENTRY, "process_group": ["2", "TENSOR_MODEL_PARALLEL_GROUP"],
             "time_discovered_started_ns": 0, "time_discovered_completed_ns": 0,
             "thread_id": "140", "state": "scheduled"}  # fmt: skip
    status = {f"last_{done}_collective": text for done, text in
              (("enqueued", "6"), ("started", "-1"), ("completed", "5"))}  # fmt: skip
    said = {"version": "2.10", "comm_lib_version": "2.27.3", "pg_config": DUMP["pg_config"],
            "pg_status": {"9": status}, "entries": [entry]}  # fmt: skip
    found = flight_dump(json.loads(json.dumps(said)), "_dump_3.json").dump
    (held,) = found.entries
    assert (held.is_completed, held.started_ns, held.completed_ns) == (False, None, None)
    assert found.status == {"2": GroupStatus(6, -1, 5)}
    assert (found.is_timed, found.nccl_version) == (False, "2.27.3")


def test_json_without_entries_still_says_how_far_groups_are() -> None:
    status = {"last_enqueued_collective": "6", "last_started_collective": "6",
              "last_completed_collective": "5"}  # fmt: skip
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}
    said = {"version": "2.10", "pg_config": config, "pg_status": {"0": status}}
    ahead, behind = (
        flight_dump({**said, "pg_status": {"0": status | more}}, f"_dump_{rank}").dump
        for rank, more in ((0, {}), (1, {"last_enqueued_collective": "5"}))
    )
    assert not ahead.says_nothing
    assert hang([ahead, behind]).ranks == (1,)


def test_numbers_of_a_group_that_no_entry_names_may_show_a_wait() -> None:
    ended = {**ENTRY, "state": "completed"}
    far = {"last_enqueued_collective": 9, "last_completed_collective": 9}

    def ranks(last: int) -> list[RankDump]:
        said = DUMP | {"entries": [ended], "pg_status": {"77": far | {
            "last_completed_collective": last}}}  # fmt: skip
        return [flight_dump({**said, "rank": rank}, "x").dump for rank in (3, 7)]

    assert hang(ranks(9)).verdict == "none"
    found = hang(ranks(8))
    assert (found.verdict, found.waiting) == ("cannot be judged", (3, 7))


def test_lists_of_a_hostile_size_are_read_once_and_cut() -> None:
    sizes = [[1] * 40] * 100_000
    entries = [{**ENTRY, "input_sizes": sizes}] * 1_000
    found = flight_dump({**DUMP, "entries": entries}, "x").dump
    assert len({id(entry.input_sizes) for entry in found.entries}) == 1
    assert len(found.entries[0].input_sizes or ()) == 65_536


@pytest.mark.parametrize("value", [{}, [], "x", {"entry": 1}, None])
def test_what_is_no_dump_is_refused(value: object) -> None:
    with pytest.raises(SourceError, match="is no flight-recorder dump, which has entries"):
        flight_dump(value, "_dump_1")


def test_a_rank_must_be_named() -> None:
    with pytest.raises(SourceError, match="names no rank: let the file's name end with it"):
        flight_dump({"entries": []}, "dump")
    assert rank_of_name("/a1/trace_7.pkl") == 7


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("rank_0_20260228", 0),
        ("Rank3-20260228.json", 3),
        ("global_rank_12_local_rank_4", 12),
        ("trace_20260228", None),
        ("_dump_3_20260228", None),
        ("_dump_12345678", None),
        ("_dump_1234567", 1_234_567),
    ],
)
def test_a_day_in_a_name_is_no_rank(name: str, rank: int | None) -> None:
    assert rank_of_name(name) == rank


@pytest.mark.parametrize("name", ["stack_3.txt", "py-spy.txt"])
def test_py_spy_tells_threads_and_functions(name: str) -> None:
    main, other = rank_stacks(PY_SPY, name)
    assert (main.rank, main.thread, main.state) == (3, "MainThread", "active")
    assert [frame.place for frame in main.frames] == [
        "all_reduce (distributed_c10d.py)", "step (train.py)", "<module> (train.py)",
    ]  # fmt: skip
    assert (other.thread, len(other.frames)) == ("Thread-1", 1)


def test_faulthandler_tells_the_current_thread_first() -> None:
    main, _ = rank_stacks(FAULT, "rank5.log")
    assert (main.rank, main.frames[0].place, main.frames[0].line) == (5, "__next__ (loader.py)", 12)
    with pytest.raises(SourceError, match="holds no stack"):
        rank_stacks("Process 1: x", "rank5.log")
    with pytest.raises(SourceError, match="names no rank"):
        rank_stacks(FAULT, "log")


def test_py_spy_as_json_is_a_stack_too(tmp_path: Path) -> None:
    frame = {"name": "wait", "filename": "/a/b.py", "short_filename": "b.py", "line": 3}
    thread = {"pid": 1, "thread_name": "MainThread", "active": False, "frames": [frame]}
    (tmp_path / "stack_8.json").write_text(json.dumps([thread]), encoding="utf-8")
    ((_, stack),) = read_all([str(tmp_path)]).stacks
    assert (stack.rank, stack.state, stack.frames[0].place) == (8, "idle", "wait (b.py)")


def test_forms_are_told_by_their_beginning() -> None:
    assert sniff(json.dumps(DUMP))
    assert sniff(pickle.dumps(DUMP, 2)[:50].decode("utf-8", "replace"))
    assert sniff(PY_SPY)
    assert is_stack(FAULT)
    assert not sniff("JobID|State")
    assert not sniff('{"jobs": []}')


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two ranks of a group: one as a packed pickle, one as JSON, with a stack and a stranger."""
    folder = tmp_path / "dumps"
    folder.mkdir()
    (folder / "_dump_3.gz").write_bytes(gzip.compress(pickle.dumps(DUMP, 2)))
    ended = {**ENTRY, "collective_seq_id": 4, "record_id": 3, "state": "completed"}
    other = {**DUMP, "rank": 7, "entries": [ended], "pg_status": {}}
    (folder / "_dump_7.json").write_text(json.dumps(other), encoding="utf-8")
    (folder / "stack_3.txt").write_text(PY_SPY, encoding="utf-8")
    (folder / "notes.md").write_text("what we saw", encoding="utf-8")
    return folder


def test_a_folder_is_stored_by_job_and_read_back_alike(folder: Path, tmp_path: Path) -> None:
    root, options = tmp_path / "store", Options(job_id="4711", cluster="c")
    (result,), *_ = ingest_files(root, "flight-recorder", [str(folder)], options)
    assert (result.rows_kept, result.rows_rejected, result.rows_read) == (4, 1, 5)
    assert result.tables == {"flight_dumps": 2, "collectives": 2, "rank_stacks": 2}
    (again,), *_ = ingest_files(root, "flight-recorder", [str(folder)], options)
    assert not any(again.tables.values())
    with closing(Store.open(root)) as store:
        (attempt,) = hangs.attempts(store, job_id="4711")
        dumps, stacks = hangs.dumps_of(store, attempt)
    assert (attempt.cluster, attempt.attempt_key, attempt.n_ranks) == ("c", None, 2)
    assert dumps == read_all([str(folder)]).last()
    assert [stack.frames[0].function for stack in stacks] == ["all_reduce"]
    assert hang(dumps).ranks == (7,)


def test_a_folder_of_dumps_is_recognised(folder: Path, tmp_path: Path) -> None:
    (folder / "_dump_3.gz").unlink()
    (result,), *_ = ingest_files(tmp_path / "store", "auto", [str(folder)], Options(job_id="7"))
    assert (result.source, result.rows_kept) == ("flight-recorder", 3)


def test_a_job_that_one_cluster_knows_places_its_dumps(folder: Path, tmp_path: Path) -> None:
    root, at = tmp_path / "store", "2026-01-05T10:00:00"
    jobs = tmp_path / "jobs.txt"
    jobs.write_text(f"JobID|Cluster|State|Submit|Start|End\n4711|hal|FAILED|{at}|{at}|{at}\n")
    ingest_files(root, "sacct", [str(jobs)], Options(timezone="UTC"))
    ingest_files(root, "flight-recorder", [str(folder / "_dump_7.json")], Options(job_id="4711"))
    with closing(Store.open(root)) as store:
        (attempt,) = hangs.attempts(store)
    assert (attempt.cluster, attempt.job_id) == ("hal", "4711")
    assert attempt.attempt_key is not None


def test_a_dump_without_a_job_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="names no job: state whose ranks these are"):
        ingest_files(tmp_path / "store", "flight-recorder", [str(folder)], Options())


def test_a_class_stops_the_file_and_not_the_folder(folder: Path) -> None:
    (folder / "_dump_9").write_bytes(pickle.dumps({"entries": [print]}, 2))
    read = read_all([str(folder)])
    assert read.rejected.total == 2
    assert any("builtin" in text and "print" in text for text in read.notices)
    with pytest.raises(SourceError, match="class or function"):
        read_all([str(folder / "_dump_9")])


def test_of_two_dumps_of_a_rank_the_later_counts(folder: Path) -> None:
    older = {**DUMP, "entries": [{**ENTRY, "time_created_ns": 5, "time_discovered_started_ns": 5}]}
    (folder / "old_3").write_bytes(pickle.dumps(older, 2))
    read = read_all([str(folder)])
    assert [dump.rank for dump in read.last()] == [3, 7]
    assert read.last()[0].entries[0].created_ns == ENTRY["time_created_ns"]
    assert any("left out" in text for text in read.notices)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is empty"),
        (b"\x80\x02}q\x00X\x07\x00\x00\x00ent", "cut off"),
        (b'{"entries": [', "is broken JSON"),
        (b"hello", "is neither a flight recorder's dump"),
        (b'{"entries": ' + b"[" * 500 + b"]" * 500 + b"}", "JSON deeper than the limit"),
        (b"[1, 2]", "is no flight-recorder dump"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "_dump_0").write_bytes(content)
    with pytest.raises(SourceError, match=why):
        read_all([str(tmp_path / "_dump_0")])
