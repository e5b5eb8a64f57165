"""Attempts and jobs of one task are one run, and sweeps are not."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.efficiency.run_rule import RunRule
from analytics.efficiency.runs import COLUMNS, JOINED_BY, link_runs
from analytics.errors import OutOfRangeError, ShapeError

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
HOURS = ("submit_at", "eligible_at", "start_at", "end_at")


def at(hours: float | None) -> datetime | None:
    return None if hours is None else BEGIN + timedelta(hours=hours)


def job(job_id: str | None, start: float | None, end: float | None, **more: Any) -> dict[str, Any]:
    """An attempt on four nodes that timed out; times in hours."""
    row: dict[str, Any] = dict.fromkeys(COLUMNS)
    row |= {
        "cluster": "c",
        "attempt_key": f"{job_id}/{start}/{more.get('submit_at')}",
        "job_id": job_id,
        "user": "ann",
        "account": "lab",
        "partition": "gpu",
        "name": "pretrain",
        "state": "TIMEOUT" if end is not None else "RUNNING",
        "submit_at": start,
        "start_at": start,
        "end_at": end,
        "n_nodes": 4,
        "n_gpus": 32,
    }
    row |= more
    return row | {name: at(row[name]) for name in HOURS}


def frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    for name in HOURS:
        table[name] = pd.to_datetime(table[name], utc=True)
    return table


def runs(*rows: dict[str, Any], **rule: Any) -> list[str]:
    return link_runs(frame(list(rows)), RunRule(**rule))["run_id"].tolist()


def rules(*rows: dict[str, Any], **rule: Any) -> list[str]:
    return link_runs(frame(list(rows)), RunRule(**rule))["joined_by"].tolist()


def test_a_requeued_job_is_one_run() -> None:
    rows = [job("7", 0, 5, n_nodes=1), job("7", 6, 8, n_nodes=1), job("8", 6, 8, n_nodes=1)]
    assert runs(*rows) == ["7", "7", "8"]
    assert rules(*rows) == ["single", "requeue", "single"]


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (job("7", 5 + 24 * 30, 800, name="x"), ["7", "7"]),
        (job("7", 6 + 24 * 30, 800, name="x"), ["7", "7#2"]),
        (job("7", 6 + 24 * 30, 800, submit_at=6, name="x"), ["7", "7"]),
        (job("7", 6, 8, user="bob"), ["7", "7#2"]),
        (job("7", 6, 8, user=None, name="x"), ["7", "7"]),
        (job("7", 6, 8, cluster="d"), ["7", "7"]),
    ],
    ids=["30 days", "31 days", "long in the queue", "another user", "user unknown", "cluster"],
)
def test_a_job_id_that_comes_again_is_another_run(
    second: dict[str, Any], expected: list[str]
) -> None:
    assert runs(job("7", 0, 5), second) == expected


def test_the_same_id_in_two_clusters_is_never_joined() -> None:
    rows = [job("7", 0, 5), job("7", 6, 8, cluster="d"), job("8", 9, 10, cluster="d")]
    found = link_runs(frame(rows))
    assert found["joined_by"].tolist() == ["single", "single", "name"]


def test_ids_that_came_again_are_numbered_in_order_of_time() -> None:
    rows = [job("7", 3000, 3001, user="c"), job("7", 0, 1, user="a"), job("7", 50, 60, user="b")]
    assert runs(*rows) == ["7#3", "7", "7#2"]


def test_an_unknown_user_between_two_users_belongs_to_the_first() -> None:
    rows = [job("7", 0, 1, user="a"), job("7", 2, 3, user=None), job("7", 4, 5, user="b")]
    assert runs(*rows) == ["7", "7", "7#2"]


def test_attempts_of_one_lineage_are_one_run_whatever_their_job_id() -> None:
    rows = [
        job("7", 0, 5, sluid="s1", original_sluid="s1", n_nodes=1),
        job("9", 4, 8, sluid="s2", original_sluid="s1", n_nodes=1),
        job("9", 9, 10, sluid="s3", original_sluid="s3", n_nodes=1),
    ]
    assert runs(*rows) == ["7", "7", "7"]
    assert rules(*rows) == ["single", "lineage", "requeue"]


def test_a_chain_of_segments_at_the_time_limit_is_one_run_until_it_completes() -> None:
    rows = [
        job("1", 0, 24),
        job("2", 25, 49, submit_at=24),
        job("3", 72, 80, submit_at=50, state="COMPLETED"),
        job("4", 81, 90),
    ]
    assert runs(*rows) == ["1", "1", "1", "4"]
    assert rules(*rows) == ["single", "name", "name", "single"]
    assert runs(*rows, after_completed=True) == ["1"] * 4
    assert runs(*rows, names="apart") == ["1", "2", "3", "4"]


@pytest.mark.parametrize("state", ["FAILED", "NODE_FAIL", "CANCELLED", "OUT_OF_MEMORY"])
def test_a_restart_by_hand_goes_on_after_any_end_but_completion(state: str) -> None:
    assert runs(job("1", 0, 2, state=state), job("2", 3, 9)) == ["1", "1"]


@pytest.mark.parametrize(
    "other",
    [
        {"user": "bob"}, {"user": None}, {"name": "other"}, {"name": None}, {"name": " "},
        {"account": "else"}, {"partition": "else"}, {"n_gpus": 64}, {"n_nodes": 1},
        {"n_nodes": None}, {"cluster": "d"},
    ],
    ids=str,
)  # fmt: skip
def test_jobs_that_differ_are_not_joined(other: dict[str, Any]) -> None:
    assert rules(job("1", 0, 2), job("2", 3, 9, **other)) == ["single", "single"]


@pytest.mark.parametrize("name", ["bash", "Interactive", "wrap", "sbatch "])
def test_names_that_nobody_gave_join_nothing(name: str) -> None:
    rows = [job("1", 0, 2, name=name), job("2", 3, 9, name=name)]
    assert runs(*rows) == ["1", "2"]
    assert runs(*rows, generic_names=()) == ["1", "1"]


def test_jobs_on_one_node_are_joined_where_the_rule_counts_gpus() -> None:
    rows = [job("1", 0, 2, n_nodes=1, n_gpus=8), job("2", 3, 9, n_nodes=1, n_gpus=8)]
    assert runs(*rows) == ["1", "2"]
    assert runs(*rows, name_min_gpus=8) == ["1", "1"]
    assert runs(*rows, name_min_gpus=9) == ["1", "2"]


def test_size_is_nodes_where_gpus_are_none_or_unknown() -> None:
    same = {"n_gpus": 0}
    assert runs(job("1", 0, 2, **same), job("2", 3, 9, **same)) == ["1", "1"]
    assert runs(job("1", 0, 2, **same), job("2", 3, 9, n_nodes=5, **same)) == ["1", "2"]
    assert runs(job("1", 0, 2, n_gpus=None), job("2", 3, 9, n_gpus=None)) == ["1", "1"]


@pytest.mark.parametrize(
    ("times", "joined"),
    [
        ({"submit_at": 26, "start_at": 30}, True),
        ({"submit_at": 26.1, "start_at": 26.1}, False),
        ({"submit_at": 26, "start_at": 90}, True),
        ({"submit_at": 1, "start_at": 26}, True),
        ({"submit_at": 1, "start_at": 27}, False),
        ({"submit_at": -9, "eligible_at": 2, "start_at": 90}, True),
        ({"submit_at": None, "start_at": 3}, True),
        ({"submit_at": 1.5, "start_at": 1.9}, False),
        ({"submit_at": 2, "start_at": 2}, True),
    ],
    ids=str,
)
def test_the_next_job_comes_within_the_gap_and_never_overlaps(
    times: dict[str, float | None], joined: bool
) -> None:
    second = job("2", times["start_at"], 99, **{k: v for k, v in times.items() if k != "start_at"})
    assert runs(job("1", 0, 2), second) == ["1", "1" if joined else "2"]


def test_jobs_that_waited_at_once_are_no_chain() -> None:
    first = job("1", 5, 7, submit_at=0, eligible_at=0)
    assert runs(first, job("2", 7, 9, submit_at=0, eligible_at=0)) == ["1", "2"]
    assert runs(first, job("2", 7, 9, submit_at=0, eligible_at=7)) == ["1", "1"]


@pytest.mark.parametrize("at_once", [2, 3, 5])
def test_a_sweep_is_not_one_run(at_once: int) -> None:
    """Jobs of one name that share so many places, one after another in each, all failing."""
    rows = [
        job(str(n), 2 * (n // at_once) + 0.1 * (n % at_once), 2 * (n // at_once) + 1.9, submit_at=n / 9)
        for n in range(20)
    ]  # fmt: skip
    assert set(rules(*rows)) == {"single"}


def test_the_lonely_tail_of_a_sweep_is_not_joined() -> None:
    rows = [job(str(n), 0, 9) for n in range(6)] + [job("8", 10, 12), job("9", 13, 15)]
    assert set(rules(*rows)) == {"single"}
    joined = link_runs(frame(rows), RunRule(max_overlap_ratio=1))
    assert joined["run_id"].tolist()[-2:] == ["8", "8"]


def test_one_overlap_parts_a_long_chain_there_and_nowhere_else() -> None:
    rows = [job(f"{n:02}", 10 * n, 10 * n + 9) for n in range(30)]
    rows.append(job("x", 105, 106))
    found = runs(*rows)
    assert found[:10] == ["00"] * 10
    assert found[10] == "10"
    assert found[11:30] == ["11"] * 19
    assert found[30] == "x"


def test_a_job_that_waits_to_be_requeued_holds_its_place() -> None:
    rows = [job("1", 0, 4, state="PREEMPTED"), job("2", 5, 6), job("1", 7, 9)]
    assert runs(*rows) == ["1", "2", "1"]
    pending = job("1", None, None, submit_at=4, state="PENDING")
    assert runs(rows[0], pending, rows[1]) == ["1", "1", "2"]


def test_a_chain_goes_on_from_the_last_attempt_of_a_requeued_job() -> None:
    rows = [job("1", 0, 4, state="NODE_FAIL"), job("1", 5, 6), job("2", 7, 9)]
    assert rules(*rows) == ["single", "requeue", "name"]
    done = [job("1", 0, 4, state="NODE_FAIL"), job("1", 5, 6, state="COMPLETED"), rows[2]]
    assert runs(*done) == ["1", "1", "2"]


def task(array: str, number: int, start: float, end: float, **more: Any) -> dict[str, Any]:
    return job(f"{array}_{number}", start, end, array_job_id=array, submit_at=0, **more)


def test_tasks_of_an_array_that_ran_one_after_the_other_are_one_run() -> None:
    rows = [task("5", n, 10 * n, 10 * n + 9, eligible_at=0) for n in range(4)]
    assert runs(*rows) == ["5_0"] * 4
    assert rules(*rows) == ["single", "array", "array", "array"]
    assert len(set(runs(*rows, arrays="apart"))) == 4
    assert len(set(runs(*[row | {"n_nodes": 1} for row in rows]))) == 4
    assert len(set(runs(*[row | {"n_nodes": 1} for row in rows], array_min_gpus=32))) == 1


def test_tasks_of_an_array_that_ran_at_once_are_runs_of_their_own() -> None:
    rows = [task("5", n, 10 * (n // 2), 10 * (n // 2) + 9) for n in range(5)]
    assert len(set(runs(*rows))) == 5
    done = [task("5", n, 10 * n, 10 * n + 9, state="COMPLETED") for n in range(3)]
    assert len(set(runs(*done))) == 3
    sizes = [task("5", 0, 0, 9), task("5", 1, 10, 19, n_gpus=64)]
    assert len(set(runs(*sizes))) == 2


def test_an_array_that_goes_on_where_another_ended_is_one_run_by_name() -> None:
    rows = [task("5", n, 10 * n, 10 * n + 9) for n in range(2)]
    rows += [job("6_0", 20, 29, array_job_id="6"), job("6_1", 30, 39, array_job_id="6")]
    assert runs(*rows) == ["5_0"] * 4
    assert rules(*rows) == ["single", "array", "name", "name"]


def test_attempts_without_start_or_end_end_no_chain() -> None:
    rows = [job("1", 0, None), job("2", 50, 60)]
    assert runs(*rows) == ["1", "2"]
    assert runs(job("1", None, 3, submit_at=0), job("2", 4, 5)) == ["1", "2"]
    assert runs(job("1", None, None), job(None, None, None)) == ["1", "None/None/None"]


def test_no_attempt_is_no_run() -> None:
    assert link_runs(frame([])).empty


def test_a_missing_column_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"attempts must have the columns .* none named name"):
        link_runs(frame([job("1", 0, 2)]).drop(columns="name"))


def test_a_rule_out_of_range_is_refused() -> None:
    with pytest.raises(OutOfRangeError, match="gap_hours must be hours > 0, at most 8,760, got -1"):
        RunRule(gap_hours=-1)
    with pytest.raises(OutOfRangeError, match='arrays must be "chain" or "apart", got None'):
        RunRule(arrays=None)  # type: ignore[arg-type]


@st.composite
def _attempts(draw: st.DrawFn, users: tuple[str | None, ...] = ("ann", "bob", None)) -> Any:
    """Attempts of few users, ids, names and arrays, close together in time."""
    rows = []
    for number in range(draw(st.integers(1, 14))):
        submit = draw(st.sampled_from([None, *range(0, 60, 3)]))
        start = draw(st.sampled_from([None, *range(0, 60, 3)]))
        length = draw(st.sampled_from([0, 2, 3, 9, 800, None]))
        end = None if start is None or length is None else start + length
        array = draw(st.sampled_from([None, None, "5"]))
        rows.append(
            job(
                draw(st.sampled_from(["1", "2", "3", "4", "5_1", None])),
                start,
                end,
                submit_at=submit,
                eligible_at=draw(st.sampled_from([None, 0, submit])),
                attempt_key=f"k{number}",
                user=draw(st.sampled_from(users)),
                name=draw(st.sampled_from(["a", "b"])),
                array_job_id=array,
                state=draw(st.sampled_from(["COMPLETED", "FAILED", "TIMEOUT"])),
                n_nodes=draw(st.sampled_from([1, 4, None])),
                original_sluid=draw(st.sampled_from([None, None, None, "s"])),
            )
        )
    return rows


@settings(deadline=None)
@given(_attempts(), st.randoms(use_true_random=False))
def test_the_order_of_rows_is_irrelevant(rows: list[dict[str, Any]], random: Any) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    one = link_runs(frame(rows)).set_index(frame(rows)["attempt_key"])
    other = link_runs(frame(shuffled)).set_index(frame(shuffled)["attempt_key"])
    pd.testing.assert_frame_equal(one.sort_index(), other.sort_index())


@settings(deadline=None)
@given(_attempts(("ann", "bob")))
def test_runs_of_different_users_never_join(rows: list[dict[str, Any]]) -> None:
    for rule in (RunRule(), RunRule(after_completed=True, max_overlap_ratio=1, gap_hours=900)):
        found = link_runs(frame(rows), rule).assign(user=[row["user"] for row in rows])
        assert (found.groupby("run_id")["user"].nunique() == 1).all()


@settings(deadline=None)
@given(_attempts())
def test_every_attempt_is_in_one_run_that_is_named_by_its_first_job(
    rows: list[dict[str, Any]],
) -> None:
    table = frame(rows)
    found = link_runs(table)
    assert found.index.equals(table.index)
    assert found["run_id"].notna().all()
    assert set(found["joined_by"]) <= set(JOINED_BY)
    firsts = found["joined_by"].eq("single").groupby(found["run_id"]).sum()
    assert (firsts == 1).all()
    names = table["job_id"].where(table["job_id"].notna(), table["attempt_key"])
    ids = set(names[found["joined_by"].eq("single")])
    assert {run.split("#")[0] for run in found["run_id"]} == ids


@settings(deadline=None)
@given(_attempts(("ann",)))
def test_jobs_joined_by_name_never_run_at_once(rows: list[dict[str, Any]]) -> None:
    alone = [row | {"job_id": row["attempt_key"], "original_sluid": None} for row in rows]
    found = link_runs(frame(alone), RunRule(max_overlap_ratio=1, after_completed=True))
    by_key = dict(zip((row["attempt_key"] for row in alone), alone, strict=True))
    for _, keys in frame(alone)["attempt_key"].groupby(found["run_id"]):
        for one, other in itertools.combinations([by_key[key] for key in keys], 2):
            first, second = sorted(
                [one, other],
                key=lambda row: (row["start_at"], row["end_at"] is None, row["end_at"]),
            )
            assert first["end_at"] <= second["start_at"]
