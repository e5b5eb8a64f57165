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
    assert "No hang: all 4 operations in the dumps of 4 ranks ended." in faultline(
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


def test_stacks_alone_are_a_hint(faultline: Any, tmp_path: Path) -> None:
    for rank in range(4):
        where = "read (loader.py:3)" if rank == 1 else "all_reduce (c10d.py:9)"
        (tmp_path / f"stack_{rank}.txt").write_text(
            f'Process {rank}: python\nPython v3.11.2 (x)\n\nThread 1 (idle): "MainThread"\n    {where}\n'
        )
    said = faultline("hangs", tmp_path, "--format", "json").json
    assert (said["verdict"], said["ranks"], said["n_dumps"]) == ("found", [1], 0)
    assert said["stacks"][0]["place"] == "all_reduce (c10d.py)"


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
