"""faultline annotate: merge, split, owner and times of incidents; they hold at once, until undone."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from app import actions
from app.answers.failures import said
from app.answers.fleet.actions import listed
from app.ask import of_store
from data.filters import Selection
from data.queries import what_if
from data.said import read_said
from data.state import State
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HEADER = "JobID|Cluster|SLUID|User|State|Submit|Start|End|NNodes|AllocTRES|NodeList|FailedNode\n"
LOST = (
    "{job}|{cluster}|k{job}|u|{state}|2026-01-{day:02d}T00:00:00|2026-01-{day:02d}T00:00:00|"
    "2026-01-{day:02d}T02:00:00|1|gres/gpu=8|n{job}|{failed}\n"
)
FOUR_GPU_HOURS = 4.0
"""Of an attempt of two hours on eight GPUs that a lost node ended, by the ledger."""


def _lost(job: int, day: int, *, cluster: str = "c", state: str = "NODE_FAIL") -> str:
    failed = f"n{job}" if state == "NODE_FAIL" else ""
    return LOST.format(job=job, day=day, cluster=cluster, state=state, failed=failed)


def _read(root: Path, text: str) -> None:
    path = root.parent / "sacct.txt"
    path.write_text(HEADER + text)
    actions.ingest_files(root, "sacct", [str(path)], actions.Options(timezone="UTC"))


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Jobs 1 to 3 of cluster c lost their nodes on three days, job 4 of cluster d its own; job 5
    ended well; only to be copied."""
    root = tmp_path_factory.mktemp("three") / "store"
    lost = [_lost(job, 4 + job) for job in (1, 2, 3)]
    well = _lost(5, 20, state="COMPLETED")
    _read(root, "".join([*lost, _lost(4, 8, cluster="d"), well]))
    actions.build_ledger(root)
    return root


@pytest.fixture
def root(three: Path, tmp_path: Path) -> Path:
    """The same store, to be written to."""
    copied: Path = shutil.copytree(three, tmp_path / "store")
    return copied


def _of_job(root: Path, job: int) -> str:
    """Id of the derived incident of a job."""
    with closing(Store.open(root)) as store:
        sql = "SELECT incident_id FROM incident_members WHERE kind = 'failure' AND key = $key"
        return str(store.rows(sql, {"key": f"k{job}"})[0][0])


@pytest.fixture
def told(faultline: Callable[..., Any], root: Path) -> Callable[..., Any]:
    """What a command prints as JSON."""
    return lambda *arguments: faultline(*arguments, "--store", root).json


@pytest.mark.slow
def test_a_merge_holds_everywhere_at_once_and_its_undo_restores_what_was(
    told: Callable[..., Any], root: Path
) -> None:
    one, other = _of_job(root, 1), _of_job(root, 2)

    def everything() -> list[Any]:
        return [told("incidents"), told("incident", one), told("incident", other)]

    before = everything()
    made = told("annotate", f"incident:{one}", "--merged-into", other)
    (row,) = [each for each in told("incidents") if each["incident_id"] == other]
    assert one not in [each["incident_id"] for each in told("incidents")]
    assert row["start_at"] == "2026-01-05T02:00:00+00:00", "the first of both"
    assert (row["n_jobs"], row["n_nodes"], row["nodes"]) == (2, 2, ["n1", "n2"])
    assert row["lost_gpu_hours"] == 2 * FOUR_GPU_HOURS
    assert "Nodes n1, n2 lost" in row["summary"]
    assert {each["key"] for each in row["evidence"]} == {"k1", "k2"}
    assert told("incidents", "--summary")["n_incidents"] == 3
    shown = told("incident", one)
    assert (shown["incident_id"], shown["lost_gpu_hours"]) == (other, 8.0)
    targets = [each["target"] for each in told("actions")["actions"]]
    assert f"incident:{other}" in targets
    assert f"incident:{one}" not in targets
    assert told("find", one)["incidents"] == []
    rate = told("mttf", "--min-gpus", 0)["incident_rate_per_1000_node_days"]
    assert rate["n"] == 3, "of four failures"
    told("annotate", "--undo", made["annotation_id"])
    assert everything() == before


@pytest.mark.slow
def test_an_attempt_is_taken_out_put_elsewhere_and_back(
    faultline: Callable[..., Any], told: Callable[..., Any], root: Path
) -> None:
    one, other, third = (_of_job(root, job) for job in (1, 2, 3))
    before = told("incidents")
    merged = told("annotate", f"incident:{one}", "--merged-into", other)
    told("annotate", "attempt:c/k1", "--incident", "none")
    (row,) = [each for each in told("incidents") if each["incident_id"] == other]
    assert (row["n_jobs"], row["lost_gpu_hours"], row["nodes"]) == (1, FOUR_GPU_HOURS, ["n2"])
    notes = faultline("incident", other, "--store", root).err
    assert "People took 1 attempt out of it" in notes
    assert "Empty" not in notes, "one of two is left"
    told("annotate", "attempt:c/k1", "--incident", third)
    rows = {each["incident_id"]: each["n_jobs"] for each in told("incidents")}
    assert (rows[other], rows[third]) == (1, 2)
    with closing(Store.open(root)) as store:
        fields = [each.field for each in said.of_incident(store, other)]
        assert sorted(fields) == ["incident", "incident", "merged_into"]
    document = faultline("incident", other, "--as", "markdown", "--store", root).out
    assert "| attempt:c/k1 incident | none |" in document
    assert f"| incident:{one} merged into | {other} |" in document
    actions.undo(root, merged["annotation_id"])
    shown = faultline("incident", one, "--store", root)
    assert "people took every failure out of it" in shown.err
    assert one not in [each["incident_id"] for each in told("incidents")]
    for each in State(root).history()[:2]:
        actions.undo(root, each.annotation_id)
    assert told("incidents") == before


def test_a_period_is_played_again_by_the_incidents_as_people_arranged_them(root: Path) -> None:
    one, other, _ = (_of_job(root, job) for job in (1, 2, 3))

    def together() -> list[int]:
        """Of each of the three jobs, the first with which it is of one incident."""
        with closing(Store.open(root)) as store:
            found = what_if.attempts(store, Selection(cluster="c"))
        events = list(found.sort_values("run_id")["event"])
        return [events.index(event) for event in events]

    assert together() == [0, 1, 2]
    actions.annotate(root, f"incident:{one}", "merged_into", other)
    assert together() == [0, 0, 2]
    actions.annotate(root, "attempt:c/k1", "incident", "none")
    assert together() == [0, 1, 2]


@pytest.mark.slow
def test_what_people_said_survives_another_ingest_and_a_target_that_is_none_any_more(
    told: Callable[..., Any], root: Path
) -> None:
    one, other = _of_job(root, 1), _of_job(root, 2)

    def shown(incident: str) -> dict[str, Any]:
        """What is said of it alone, without others that are like it."""
        found = told("incident", incident)
        return {key: value for key, value in found.items() if key != "similar"}

    alone = shown(one)
    told("annotate", f"incident:{one}", "--merged-into", other)
    together = shown(other)
    _read(root, _lost(6, 25))
    actions.build_ledger(root)
    assert shown(other) == together
    _read(root, _lost(2, 6, state="COMPLETED").replace("T02", "T03"))  # its final record
    actions.build_ledger(root)
    assert shown(one) == alone, "what it was merged into is retired"
    assert other not in [each["incident_id"] for each in told("incidents")]


def test_what_was_taken_out_of_an_incident_can_be_put_back_into_it(
    told: Callable[..., Any], refused: Callable[..., str], root: Path
) -> None:
    one, other = _of_job(root, 1), _of_job(root, 2)
    before = told("incidents")
    told("annotate", "attempt:c/k1", "--incident", "none")
    line = refused("annotate", f"incident:{other}", "--merged-into", one, "--store", root)
    assert f"incident {one} is empty, people took every failure out of it" in line
    told("annotate", "attempt:c/k1", "--incident", one)
    assert told("incidents") == before


REFUSED = [
    ("incident:{1}", "--merged-into", "{1}", "cannot be merged into itself"),
    ("incident:{1}", "--merged-into", "{3}", "was merged into {2} before: `faultline annotate --undo"),
    ("incident:{2}", "--merged-into", "{1}", "{1} was merged into {2} before, both ways are a circle"),
    ("incident:{3}", "--merged-into", "{1}", "{1} was merged into {2}: name {2} instead"),
    ("incident:{3}", "--merged-into", "abc", "incident 'abc' is not in the store"),
    ("incident:{3}", "--merged-into", "{4}", "is of cluster c and {4} of d"),
    ("incident:abc", "--merged-into", "{1}", "the store holds no such incident"),
    ("attempt:c/k1", "--merged-into", "{3}", "merged_into is said of an incident alone"),
    ("incident:{1}", "--incident", "none", "incident is said of an attempt alone"),
    ("attempt:c/k5", "--incident", "none", "attempt c/k5 is of no incident"),
    ("attempt:c/k5", "--incident", "{3}", "attempt c/k5 did not fail"),
    ("attempt:c/k3", "--incident", "{3}", "is of incident {3} already"),
    ("attempt:c/k3", "--incident", "{4}", "is of cluster c and incident {4} of d"),
    ("attempt:c/k3", "--incident", "{1}", "{1} was merged into {2}: name {2} instead"),
    ("attempt:c/k3", "--owner", "x", "owner is said of an incident alone"),
    ("incident:{3}", "--owner", " ", "owner holds 1 to 100 characters, got 0"),
]  # fmt: skip


@pytest.mark.slow
def test_what_cannot_be_merged_or_moved_is_refused_in_one_line(
    refused: Callable[..., str], root: Path
) -> None:
    ids = {str(job): _of_job(root, job) for job in (1, 2, 3, 4)}

    def named(text: str) -> str:
        for job, each in ids.items():
            text = text.replace(f"{{{job}}}", each)
        return text

    actions.annotate(root, f"incident:{ids['1']}", "merged_into", ids["2"])
    said_before = State(root).history()
    for target, option, value, message in REFUSED:
        line = refused("annotate", named(target), option, named(value), "--store", root)
        assert named(message) in line, line
    assert State(root).history() == said_before
    shouted = ids["3"].upper()
    for line in (
        refused("annotate", f"incident:{shouted}", "--owner", "x", "--store", root),
        refused("annotate", f"incident:{ids['2']}", "--merged-into", shouted, "--store", root),
        refused("incident", shouted, "--store", root),
    ):
        assert f"did you mean {'incident:' * ('such' in line)}{ids['3']}?" in line, line


@pytest.mark.slow
def test_a_retired_incident_is_named_as_such(
    refused: Callable[..., str], incident_store: Path, tmp_path: Path
) -> None:
    root = shutil.copytree(incident_store, tmp_path / "store")
    with closing(Store.open(root)) as store:
        sql = "SELECT incident_id FROM incidents WHERE {} ORDER BY ALL LIMIT 1"
        (gone,), (living,), (old,) = (
            store.rows(sql.format(where))[0]
            for where in (
                "retired AND superseded_by IS NULL", "NOT retired", "superseded_by IS NOT NULL",
            )
        )  # fmt: skip
    line = refused("annotate", f"incident:{living}", "--merged-into", gone, "--store", root)
    assert f"incident {gone} is retired" in line
    line = refused("annotate", f"incident:{living}", "--merged-into", old, "--store", root)
    assert f"incident {old} was merged into" in line
    line = refused("annotate", f"incident:{gone}", "--merged-into", living, "--store", root)
    assert f"incident {gone} is retired" in line


@pytest.mark.slow
def test_who_has_it_and_how_long_it_took_stand_in_list_page_and_report(
    faultline: Callable[..., Any], told: Callable[..., Any], root: Path
) -> None:
    one = _of_job(root, 1)
    target = f"incident:{one}"
    bare = told("incident", one)
    assert [bare[key] for key in ("owner", "assignee", "remedy", "acknowledged_at", "resolved_by",
                                  "hours_to_acknowledge", "hours_to_resolve")] == [None] * 7  # fmt: skip
    for option, value in (("--owner", "storage team"), ("--assignee", "ada"),
                          ("--remedy", "Swapped the riser."), ("--status", "acknowledged")):  # fmt: skip
        told("annotate", target, option, value)
    resolved = told("annotate", target, "--status", "resolved")
    (row,) = told("incidents", "--assignee", "ada")
    assert (row["incident_id"], row["status"]) == (one, "resolved")
    assert told("incidents", "--owner", "nobody") == []
    assert row["acknowledged_at"] == told("annotate", target, "--list")[1]["made_at"]
    assert row["resolved_at"] == resolved["made_at"]
    assert row["hours_to_resolve"] >= row["hours_to_acknowledge"] > 0
    assert target not in [each["target"] for each in told("actions")["actions"]]
    document = faultline("incident", one, "--as", "markdown", "--store", root).out
    order = ["What happened when", "## Cause", "## Cost", "What people said", "What we do about it"]
    places = [document.index(f"{'' if each[0] == '#' else '## '}{each}") for each in order]
    assert places == sorted(places)
    assert "Swapped the riser." in document
    assert "storage team" in document
    hidden = faultline("incident", one, "--redact", "--format", "json", "--store", root).json
    assert hidden["assignee"].startswith("user-")
    assert "ada" not in json.dumps(hidden)
    told("annotate", "--undo", resolved["annotation_id"])
    again = told("incident", one)
    assert (again["status"], again["resolved_at"]) == ("acknowledged", None)
    assert again["acknowledged_at"] == row["acknowledged_at"]


STATUSES = {
    "nobody acknowledged it": (["resolved"], {"resolved"}),
    "the first of two counts": (["acknowledged", "acknowledged"], {"acknowledged"}),
    "open again": (["acknowledged", "resolved", "open"], set()),
    "taken up again": (["acknowledged", "resolved", "acknowledged"], {"acknowledged"}),
}


@pytest.mark.parametrize("case", STATUSES.values(), ids=STATUSES)
def test_times_are_those_of_the_status_that_holds(
    tmp_path: Path, case: tuple[list[str], set[str]]
) -> None:
    said_statuses, holding = case
    made = [State(tmp_path).annotate("incident:i", "status", each, author=f"p{n}")
            for n, each in enumerate(said_statuses)]  # fmt: skip
    found = read_said(tmp_path)
    for status in ("acknowledged", "resolved"):
        by = [value for _, value in found.pairs("incident", f"{status}_by")]
        first = next((each.author for each in made if each.value == status), None)
        assert by == ([first] if status in holding else []), status


@pytest.mark.slow
def test_an_incident_of_today_that_hit_no_job_is_not_over(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    xid = "n1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus."
    path = root.parent / "kern.log"
    path.write_text("".join(f"2026-01-{day}T10:00:00+00:00 {xid}\n" for day in ("01", "21")))
    of_e = actions.Options(cluster="e", timezone="UTC")
    actions.ingest_files(root, "kernel-log", [str(path)], of_e)
    jobs = root.parent / "jobs.txt"  # n1 ran a job before; a host without any has a row of its own
    jobs.write_text(
        "JobID|Cluster|State|Submit|Start|End|NNodes|AllocTRES|NodeList\n"
        "1|e|COMPLETED|2025-12-30T00:00:00|2025-12-30T00:00:00|2025-12-31T00:00:00|1|gres/gpu=8|n1\n"
        "2|e|COMPLETED|2026-01-20T00:00:00|2026-01-20T00:00:00|2026-01-21T11:00:00|1|gres/gpu=8|n2\n"
    )
    actions.ingest_files(root, "sacct", [str(jobs)], of_e)
    actions.build_ledger(root)
    with closing(Store.open(root)) as store:
        asked = of_store(store), Selection(), datetime(2026, 1, 22, tzinfo=UTC)
        found = listed.listed(*asked)
        monkeypatch.setattr("app.answers.fleet.actions.rows.FEW", 1)
        few = [each for each in listed.listed(*asked).due if each.kind == "incident"]
    rows = [each for each in found.due if "fell off the bus" in each.what]
    assert [(each.gpu_hours, each.is_over) for each in rows] == [(0.0, False), (0.0, True)]
    assert len(few) == 2, "the largest"
    assert rows[0] in few, "and the latest"
    n_over = len([each for each in found.due if each.is_over])
    assert n_over == 4, "three of c and the first of e; of d nothing later is known"
    assert f"; {n_over} of them with nothing at stake any more" in listed.sentence(found)


@pytest.mark.slow
def test_an_incident_that_is_over_has_nothing_at_stake_and_comes_last(root: Path) -> None:
    _read(root, _lost(7, 19))
    actions.build_ledger(root)
    with closing(Store.open(root)) as store:
        rows = listed.listed(of_store(store), Selection(), datetime(2026, 1, 21, tzinfo=UTC)).due
        order = [each for each in rows if each.kind == "incident"]
    of = {each.target: each for each in order}
    fresh, over = (of[f"incident:{_of_job(root, job)}"] for job in (7, 1))
    assert (fresh.gpu_hours, over.gpu_hours) == (FOUR_GPU_HOURS, 0.0), "one is a day old"
    assert "over, 4.00 GPU-hours were lost" in over.why
    assert "whether its nodes are back is not known" in over.stake_basis, "no node events"
    assert order.index(fresh) < order.index(over)
    assert rows[-1].kind == "incident", "after what nobody can count"
