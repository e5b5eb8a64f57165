"""faultline hangs: verdicts of files and of the store, places of ranks, and what is refused."""

from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from app.answers.training import hang_words, hangs
from tests.hung.cluster import pickled
from tests.hung.scenarios import scenario

if TYPE_CHECKING:
    from pathlib import Path

WORLD = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}}
AT_NS = 1_767_610_800_000_000_000
SACCT = """JobID|Cluster|State|Submit|Start|End|NNodes|AllocTRES|NodeList
4711|c|NODE_FAIL|2026-01-05T10:00:00|2026-01-05T10:00:00|2026-01-05T12:00:00|2|gres/gpu=4|gpu[1-2]
"""


def entry(seq: int, state: str, **said: Any) -> dict[str, Any]:
    return {
        "record_id": seq - 1, "pg_id": 0, "process_group": ("0", "default_pg"), "is_p2p": False,
        "collective_seq_id": seq, "profiling_name": "nccl:all_reduce", "state": state,
        "input_sizes": [[8]], "output_sizes": [[8]], "time_created_ns": AT_NS,
    } | said  # fmt: skip


def write(folder: Path, entries: dict[int, list[dict[str, Any]]], **said: Any) -> Path:
    folder.mkdir(exist_ok=True)
    for rank, held in entries.items():
        dump = {"version": "2.9", "pg_config": WORLD, "entries": held} | said
        (folder / f"_dump_{rank}").write_bytes(pickle.dumps(dump, 2))
    return folder


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    """Rank 2 of four never joined the second collective."""
    done, waits = entry(1, "completed"), entry(2, "started")
    return write(tmp_path / "dumps", {rank: [done] + [waits] * (rank != 2) for rank in range(4)})


def test_a_folder_names_rank_collective_and_group(faultline: Any, dumps: Path) -> None:
    found = faultline("hangs", dumps, "--format", "json").json
    assert {key: found[key] for key in ("verdict", "ranks", "kind", "collective", "seq",
                                        "process_group", "confidence", "n_dumps")} == {
        "verdict": "found", "ranks": [2], "kind": "never joined", "collective": "nccl:all_reduce",
        "seq": 2, "process_group": "default_pg", "confidence": "high", "n_dumps": 4,
    }  # fmt: skip
    table = faultline("hangs", *sorted(dumps.iterdir()), "--format", "table").out
    assert "Rank 2 never joined nccl:all_reduce 2 of default_pg; 3 ranks wait for it." in table
    assert "Ranks 0-1, 3 enqueued nccl:all_reduce 2 of default_pg, which did not end." in table
    sheet = faultline("hangs", dumps, "--format", "csv").out.splitlines()
    assert sheet[1].startswith("2,,,never joined,nccl:all_reduce,2,default_pg,high")


def test_ranks_without_a_dump_are_told(faultline: Any, dumps: Path) -> None:
    (dumps / "_dump_3").unlink()
    said = faultline("hangs", dumps, "--format", "json")
    assert (said.json["verdict"], said.json["ranks"]) == ("ambiguous", [2, 3])
    assert said.json["ranks_without_dump"] == [3]
    assert "No dump of rank 3: a rank without a dump may be the one" in said.err


def test_a_job_that_ended_well_has_no_hang(faultline: Any, tmp_path: Path) -> None:
    folder = write(tmp_path / "well", {rank: [entry(1, "completed")] for rank in range(4)})
    said = faultline("hangs", folder, "--format", "json").json
    assert (said["verdict"], said["ranks"], said["confidence"]) == ("none", [], None)
    assert "Nothing hangs in the flight recorder: all 4 operations in the dumps of 4 ranks ended." in faultline(
        "hangs", folder, "--format", "table").out  # fmt: skip
    (folder / "_dump_1").unlink()
    assert faultline("hangs", folder, "--format", "json").json["verdict"] == "cannot be judged"


def test_the_store_answers_by_job_with_nodes_and_gpus(
    faultline: Any, refused: Any, dumps: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    (tmp_path / "jobs.txt").write_text(SACCT)
    faultline("ingest", "sacct", tmp_path / "jobs.txt", "--timezone", "UTC", "--store", store)
    assert "has no dump of job '4711', it has none of any job" in refused(
        "hangs", "--job", "4711", "--store", store)  # fmt: skip
    faultline("ingest", "flight-recorder", dumps, "--job-id", "4711", "--store", store)
    found = faultline("hangs", "--job", "4711", "--store", store, "--format", "json").json
    assert (found["verdict"], found["ranks"], found["nodes"]) == ("found", [2], ["gpu2"])
    assert (found["candidates"][0]["node"], found["candidates"][0]["gpu"]) == ("gpu2", 0)
    assert (found["cluster"], found["job_id"], found["attempt"]) == ("c", "4711", 1)
    assert found["incident_id"]
    assert "it has those of 4711" in refused("hangs", "--job", "9", "--store", store)


def write_stacks(folder: Path, elsewhere: int, most: str = "all_reduce (c10d.py:9)") -> None:
    """What py-spy says of four ranks, one of which stands elsewhere."""
    for rank in range(4):
        where = "read (loader.py:3)" if rank == elsewhere else most
        (folder / f"stack_{rank}.txt").write_text(
            f'Process {rank}: python\nPython v3.11.2 (x)\n\nThread 1 (idle): "MainThread"\n    {where}\n'
        )


def test_stacks_alone_are_a_hint(faultline: Any, tmp_path: Path) -> None:
    write_stacks(tmp_path, 1)
    said = faultline("hangs", tmp_path, "--format", "json").json
    assert (said["verdict"], said["ranks"], said["n_dumps"]) == ("found", [1], 0)
    assert said["stacks"][0]["place"] == "all_reduce (c10d.py)"


def test_a_wait_outside_of_the_recorder_is_told_by_stacks(faultline: Any, tmp_path: Path) -> None:
    folder = write(tmp_path / "dumps", {rank: [entry(1, "completed")] for rank in range(4)})
    write_stacks(folder, 3, "barrier (gloo_barrier.py:5)")
    said = faultline("hangs", folder, "--format", "json")
    assert (said.json["verdict"], said.json["ranks"], said.json["confidence"]) == (
        "found", [3], "low",
    )  # fmt: skip
    assert (said.json["kind"], said.json["n_dumps"]) == ("stands elsewhere", 4)
    assert "Waits outside of the recorder (Gloo, a store, files) are not seen." in said.err
    table = faultline("hangs", folder, "--format", "table").out
    assert "Nothing hangs in the flight recorder: all 4 operations" in table
    assert "Rank 3 stands elsewhere than the 3 ranks in barrier (gloo_barrier.py)" in table


@pytest.fixture
def twice(faultline: Any, tmp_path: Path) -> tuple[Path, Path]:
    """A store with two attempts of job 900, and the dumps of the first: rank 3's ring is empty."""
    store, held = tmp_path / "store", [entry(1, "completed"), entry(2, "started")]
    (tmp_path / "jobs.txt").write_text(
        "JobID|Cluster|State|Submit|Start|End\n"
        "900|c|FAILED|2026-01-05T10:00:00|2026-01-05T10:00:00|2026-01-05T12:00:00\n"
        "900|c|FAILED|2026-01-05T13:00:00|2026-01-05T13:00:00|2026-01-05T15:00:00\n"
    )
    faultline("ingest", "sacct", tmp_path / "jobs.txt", "--timezone", "UTC", "--store", store)
    folder = write(tmp_path / "first", {rank: held if rank < 3 else [] for rank in range(4)})
    write_stacks(folder, 3)
    return store, folder


def verdict(faultline: Any, store: Path) -> tuple[Any, ...]:
    found = faultline("hangs", "--job", "900", "--store", store, "--format", "json").json
    told = ("verdict", "ranks", "kind", "confidence", "n_dumps", "attempt")
    return tuple(found[key] for key in told)


def test_stored_dumps_and_stacks_without_a_time_are_of_the_attempt_of_those_beside_them(
    faultline: Any, twice: tuple[Path, Path], tmp_path: Path
) -> None:
    store, first = twice
    ingest = ("ingest", "flight-recorder", "--job-id", "900", "--store", store)
    faultline(*ingest, first)
    assert verdict(faultline, store) == ("found", [3], "never joined", "medium", 4, 1)
    held = [
        one | {"time_created_ns": AT_NS + 3 * 3_600 * 10**9}
        for one in (entry(1, "completed"), entry(2, "started"))
    ]
    second = write(tmp_path / "second", {rank: held if rank < 3 else [] for rank in range(4)})
    faultline(*ingest, second)
    assert verdict(faultline, store) == ("found", [3], "never joined", "medium", 4, 2)


@pytest.mark.slow
def test_files_that_are_stored_one_by_one_are_placed_alike(
    faultline: Any, twice: tuple[Path, Path]
) -> None:
    store, first = twice
    files = sorted(first.iterdir())
    faultline("ingest", "flight-recorder", *files, "--job-id", "900", "--store", store)
    assert verdict(faultline, store) == ("found", [3], "never joined", "medium", 4, 1)


def test_operations_that_could_not_be_read_are_told_from_the_store_too(
    faultline: Any, tmp_path: Path
) -> None:
    broken = [entry(1, "completed"), entry(2, "aborted")]
    folder = write(tmp_path / "dumps", dict.fromkeys(range(4), broken))
    store = tmp_path / "store"
    faultline("ingest", "flight-recorder", folder, "--job-id", "7", "--store", store)
    for asked in ((folder,), ("--job", "7", "--store", store)):
        said = faultline("hangs", *asked, "--format", "json")
        assert (said.json["verdict"], said.json["n_rejected"]) == ("cannot be judged", 4)
        assert "4 records could not be read." in said.err
        assert "The dump of ranks 0-3 has operations that were not read." in said.err


def test_a_broken_file_of_ranks_that_nobody_states_may_be_the_one(
    faultline: Any, tmp_path: Path
) -> None:
    ended = {rank: [entry(1, "completed")] for rank in range(3)}
    folder = write(tmp_path / "dumps", ended, pg_config={})
    (folder / "_dump_3").write_bytes(b"\x80\x02}q")
    assert faultline("hangs", folder, "--format", "json").json["verdict"] == "cannot be judged"
    table = faultline("hangs", folder, "--format", "table").out
    assert "cannot be judged: no dump states which ranks the job has" in table


def test_rings_that_hold_nothing_do_not_say_that_nobody_waits(
    faultline: Any, tmp_path: Path
) -> None:
    folder = write(tmp_path / "dumps", {rank: [] for rank in range(4)})
    table = faultline("hangs", folder, "--format", "table")
    assert "cannot be judged: some dumps hold nothing" in table.out
    assert "Ranks waiting   unknown" in table.out
    assert "The dump of ranks 0-3 holds no operation." in table.err


def test_what_is_refused(refused: Any, tmp_path: Path, dumps: Path) -> None:
    assert "dumps or --job must be given, got neither" in refused("hangs")
    assert "got both" in refused("hangs", dumps, "--job", "7")
    assert "no such file" in refused("hangs", tmp_path / "none")
    (tmp_path / "empty").mkdir()
    assert "holds no file" in refused("hangs", tmp_path / "empty")
    evil = tmp_path / "_dump_0"
    evil.write_bytes(b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00exit\x85R.")
    assert "with the class or function os.system, which is not looked up" in refused("hangs", evil)


def test_every_kind_of_hang_is_said_in_words(tmp_path: Path) -> None:
    for kind in ("wrong order", "different shapes", "two candidates"):
        one = scenario(kind, 1)
        folder = tmp_path / kind.replace(" ", "-")
        folder.mkdir()
        for rank, dump in one.dumps.items():
            (folder / f"_dump_{rank}").write_bytes(pickled(dump))
        found = hangs.answer(hangs.of_files([str(folder)]))
        assert found.sentence.startswith("Rank")
        assert found.sentence.endswith(".")
        json.dumps(found.record)
    assert hang_words.ranks(range(0, 60, 2)).endswith("and 18 more ranges")
