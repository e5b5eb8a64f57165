"""One user's jobs: why each ended, whose fault it was, what was lost, whatever the records lack."""

from __future__ import annotations

import json
import math
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from app.actions import Options, build_ledger, ingest_files
from app.answers.efficiency import my_runs
from app.ask import of_store
from app.cli import main
from data.errors import DataError
from data.filters import Selection
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

HEADER = "JobID|Cluster|User|State|Submit|Start|End|NNodes|AllocTRES|NodeList|FailedNode\n"
DAY = "2026-01-05T00:00:00|2026-01-05T00:00:00"
ROWS = f"""\
1|c|Alice|FAILED|{DAY}|2026-01-05T02:00:00|1|gres/gpu=8|n1|
2|c|Alice|NODE_FAIL|{DAY}|2026-01-05T10:00:00|2|gres/gpu=16|n[1-2]|n2
3|c|Alice|PREEMPTED|{DAY}|2026-01-05T00:15:00|1|gres/gpu=4|n3|
4|c|Alice|COMPLETED|{DAY}|2026-01-06T00:00:00|2|gres/gpu=16|n[3-4]|
5|c|Alice|RUNNING|{DAY}|Unknown|1|gres/gpu=1|n5|
6|c|bob|FAILED|{DAY}|2026-01-05T02:00:00|1||n6|
7|c|BOB|COMPLETED|{DAY}|2026-01-05T02:00:00|1|gres/gpu=8|n6|
8|c|single|TIMEOUT|{DAY}|2026-01-05T02:00:00|1|gres/gpu=8|n6|
9|c||FAILED|{DAY}|2026-01-05T02:00:00|1|gres/gpu=8|n6|
10|cpu|carol|NODE_FAIL|{DAY}|2026-01-05T02:00:00|2||m[1-2]|m1
11|c|dora|NODE_FAIL|{DAY}|2026-01-05T02:00:00|1|gres/gpu=8|n7|n7
12|c|dora|NODE_FAIL|{DAY}|2026-01-05T02:00:00|1||n8|n8
"""
LOG = "Traceback (most recent call last):\n  File \"train.py\", line 3\nKeyError: 'Alice_mask'\n"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Seven users, one of them without GPUs, one with some, one on a cluster that counts none, one without name."""
    folder = tmp_path_factory.mktemp("owners")
    (folder / "sacct.txt").write_text(HEADER + ROWS)
    ingest_files(folder / "store", "sacct", [str(folder / "sacct.txt")], Options(timezone="UTC"))
    (folder / "slurm-1.out").write_text(LOG)
    log = Options(cluster="c", timezone="UTC")
    ingest_files(folder / "store", "job-log", [str(folder / "slurm-1.out")], log)
    build_ledger(folder / "store")
    with closing(Store.open(folder / "store")) as opened:
        yield opened


def test_the_jobs_of_a_user_by_hand(store: Store) -> None:
    """16 GPUs lost half a cycle of an hour and a minute at the lost node, 4 GPUs a quarter of an
    hour, all that they ran, at the preemption."""
    found = my_runs.measured(store, "Alice", Selection())
    of = found.jobs
    assert (of.n_attempts, of.n_open, of.n_failed, of.n_preempted) == (5, 1, 2, 1)
    assert of.by_domain == {"user": 1, "system_software": 0, "hardware": 0, "unknown": 1}
    assert of.n_interrupted == 2
    half_a_cycle = (3600**2 / 2 + 3600 * 60) / 3660
    assert of.lost_gpu_hours == pytest.approx((16 * half_a_cycle + 4 * 900) / 3600, abs=0.01)
    assert of.own_gpu_hours == 8 * 2.0
    assert found.ettr.n_runs == 2
    assert set(found.ettr.by_run["user"]) == {"Alice"}
    by_cause = of.by_cause.set_index("cause")
    assert by_cause.index.tolist() == ["node_lost", "key_error", "preempted"]
    assert by_cause["gpu_hours"].tolist() == [160.0, 16.0, 1.0]


def test_each_cause_says_whose_fault_it_was_what_to_do_and_the_line_that_shows_it(
    store: Store,
) -> None:
    answer = my_runs.answer(of_store(store), "Alice", Selection())
    assert answer.sentence == (
        "Alice: 2 of 5 attempts failed, interruptions lost 9.13 GPU-hours; 1 by the program, 1 of "
        "unknown cause."
    )
    rows = answer.table("causes").rows.set_index("cause")  # type: ignore[union-attr]
    assert rows.loc["key_error", "fault"] == "user program"
    assert rows.loc["key_error", "evidence"] == "KeyError: 'Alice_mask'"
    assert "should hold the key" in rows.loc["key_error", "action"]
    assert rows.loc["preempted", ["fault", "owner"]].tolist() == ["nobody", "user"]
    jobs = answer.table("my_jobs").rows.set_index("job_id")  # type: ignore[union-attr]
    assert jobs.loc["4", ["title", "fault", "action"]].isna().all()
    assert jobs.loc["5", "gpu_hours"] == 24.0, "a running job is counted to the end of the records"


def test_numbers_and_causes_open_the_jobs_behind_them(store: Store) -> None:
    ask, answer = of_store(store), my_runs.answer(of_store(store), "alice", Selection())
    behind = [number.opens.opened(ask, limit=9) for number in answer.numbers if number.opens]
    jobs = [[str(job) for job in table.rows["job_id"]] for table in behind[:4]]  # type: ignore[call-overload]
    assert list(map(sorted, jobs)) == [["1", "2"], [], ["2", "3"], ["1"]]
    assert len(behind[4]) == 2, "runs behind the ETTR"
    part = answer.table("causes").opens
    assert part is not None
    rows = part.behind({"cause": "preempted"}).opened(ask, limit=9).rows
    assert rows["job_id"].tolist() == ["3"]  # type: ignore[call-overload]


@pytest.mark.parametrize("name", ["alice", "ALICE"])
def test_a_name_in_another_case_is_the_same_user(store: Store, name: str) -> None:
    assert my_runs.measured(store, name, Selection()).user == "Alice"


def test_names_that_differ_by_case_alone_are_two_users(store: Store) -> None:
    assert my_runs.measured(store, "BOB", Selection()).jobs.n_failed == 0
    assert my_runs.measured(store, "bob", Selection()).jobs.n_failed == 1
    with pytest.raises(DataError, match="user 'Bob' is BOB or bob: name one of them"):
        my_runs.measured(store, "Bob", Selection())


def test_unknown_users_are_refused_with_what_was_meant(store: Store) -> None:
    with pytest.raises(DataError, match="'alise' has no job in the store: did you mean 'Alice'"):
        my_runs.measured(store, "alise", Selection())
    with pytest.raises(DataError, match="`faultline runs` lists those that have"):
        my_runs.measured(store, "somebody else", Selection())


def test_without_gpus_what_was_held_and_lost_stays_unknown(store: Store) -> None:
    answer = my_runs.answer(of_store(store), "carol", Selection())
    assert answer.record["failed"] == 1
    assert answer.record["lost_gpu_hours"] is None
    assert answer.numbers[2].value == "unknown"
    assert math.isnan(answer.record["jobs"]["gpu_hours"].iloc[0])


def test_a_sum_of_which_a_part_is_unknown_is_a_lower_bound(store: Store) -> None:
    answer = my_runs.answer(of_store(store), "dora", Selection())
    assert (answer.record["lost_gpu_hours"], answer.record["n_lost_unknown"]) == (4.0, 1)
    assert (answer.numbers[2].value, answer.numbers[2].basis) == (
        "at least 4.00", "2 interruptions, 1 of unknown loss"
    )  # fmt: skip
    assert "lost at least 4.00 GPU-hours" in answer.sentence


def test_without_runs_on_several_nodes_there_is_no_ettr(store: Store) -> None:
    answer = my_runs.answer(of_store(store), "single", Selection())
    assert "ETTR" not in "".join(number.term.label for number in answer.numbers)
    assert answer.record["n_runs"] == 0
    assert len(answer.table("runs")) == 0
    assert "No run on several nodes" in answer.table("runs").empty


def test_a_period_without_a_job_says_when_there_were_some(store: Store) -> None:
    later = Selection(from_at=datetime(2027, 1, 1, tzinfo=UTC))
    answer = my_runs.answer(of_store(store), "Alice", later)
    assert "No job of Alice ended in this selection" in answer.sentence
    assert "5 Jan 2026" in answer.sentence
    assert answer.numbers == ()
    assert answer.chart("my_jobs").remedy.startswith("Choose a longer period")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("selection", "n"),
    [
        (Selection(), 5),
        (Selection(min_gpus=8), 3),
        (Selection(cluster="cpu"), 0),
        (Selection(to_at=datetime(2026, 1, 5, 1, tzinfo=UTC)), 1),
    ],
    ids=["all", "large ones", "another cluster", "the first hour"],
)
def test_filters_choose_among_the_jobs(store: Store, selection: Selection, n: int) -> None:
    assert my_runs.measured(store, "Alice", selection).jobs.n_attempts == n


def test_users_are_listed_with_most_gpu_time_first_and_nobody_without_a_name(store: Store) -> None:
    users = my_runs.everyone(of_store(store), Selection()).record["users"]
    assert users["user"].tolist()[0] == "Alice"
    assert set(users["user"]) == {"Alice", "bob", "BOB", "single", "carol", "dora"}


def test_the_command_prints_the_same_and_hides_names(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    of = ["--store", str(store.root), "--format", "json"]
    assert main(["runs", "--user", "alice", *of]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["user"] == "Alice"
    assert (plain["failed"], round(plain["lost_gpu_hours"], 2)) == (2, 9.13)
    assert {"value", "lower", "upper", "conf_level", "n"} <= set(plain["ettr"])
    assert main(["runs", "--user", "alice", "--redact", *of]) == 0
    hidden = capsys.readouterr().out
    assert json.loads(hidden)["user"].startswith("user-")
    assert "Alice" not in hidden
    assert main(["runs", "--user", "nobody at all", *of]) == 2
    assert capsys.readouterr().err.count("\n") == 1
