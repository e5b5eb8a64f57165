"""The list of what to do: its order, what puts a row off, and what brings it back."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from app import actions
from app.actions import DataError
from app.answers.failures import incidents
from app.answers.fleet.actions import listed
from app.answers.fleet.actions.action import Action, rank, recorded, target
from app.answers.fleet.actions.listed import Listed
from app.ask import of_store
from app.cli import main
from app.words.periods import Period
from data.filters import Selection
from data.state import State
from data.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from app.answers.fleet.actions.action import Kind

NOW = datetime(2026, 1, 7, tzinfo=UTC)
KINDS = ("incident", "cause", "straggler", "source")
EVERYTHING = Selection()


def _action(kind: Kind, name: str, hours: float | None, hides: float = 0.0) -> Action:
    stake = None if hours is None else recorded(hours, 1)
    return Action(kind, target(kind, name), name, "", stake, "", "data", hides=(0, hides))


def _listed(root: Path, now: datetime = NOW) -> Listed:
    with closing(Store.open(root)) as store:
        return listed.listed(of_store(store), EVERYTHING, now)


def test_most_gpu_hours_come_first_and_what_nobody_can_count_last_by_what_it_hides() -> None:
    rows = [
        _action("source", "quiet", None),
        _action("cause", "small", 3.0),
        _action("source", "blind", None, 500.0),
        _action("incident", "large", 90.0),
        _action("straggler", "no meta file", None, 0.0),
    ]
    names = [each.what for each in sorted(rows, key=rank)]
    assert names[:3] == ["large", "small", "blind"]


def test_a_hundred_incidents_hide_no_node_to_drain() -> None:
    rows = [_action("incident", f"i{n}", 100.0 - n) for n in range(60)]
    rows += [_action("node", "lemon", 5.0), _action("source", "blind", None)]
    shown = [each.what for each in listed.first(rows, 6)]
    assert shown == ["i0", "i1", "i2", "i3", "lemon", "blind"]
    assert [each.what for each in listed.first(rows[:3], 6)] == ["i0", "i1", "i2"]


def test_three_nodes_to_drain_are_among_the_first_rows_whatever_else_there_is() -> None:
    rows = [_action(kind, f"{kind}{n}", 100.0 - n) for n in range(3) for kind in KINDS]
    rows += [_action("node", f"lemon{n}", 5.0 - n) for n in range(4)]
    shown = [each.what for each in listed.first(rows, 7)]
    assert shown[4:] == ["lemon0", "lemon1", "lemon2"]
    assert shown[:4] == ["incident0", "cause0", "straggler0", "source0"]


def test_what_cost_no_gpu_hour_is_not_over() -> None:
    """Failures of jobs without GPUs, or in the first second, cost none; the card lists them."""
    crowd, over = _action("mass_failure", "crowd", 0.0), _action("incident", "over", 0.0)
    rows = sorted([replace(over, is_over=True), _action("source", "blind", None), crowd], key=rank)
    assert [each.what for each in rows] == ["crowd", "blind", "over"]
    found = Listed(tuple(rows), ())
    card = listed.brief(found, 3, Period(None, None))
    assert [row[0] for row in card.values] == ["crowd", "blind"]
    assert card.note == "2 of 2 things to do; 1 more with nothing at stake any more."
    assert "3 things to do; 1 of them with nothing at stake any more" in listed.sentence(found)
    nothing_due = listed.brief(Listed(tuple(rows[2:]), ()), 3, Period(None, None))
    assert nothing_due.note == "1 more with nothing at stake any more."


@pytest.fixture(scope="module")
def store(incident_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy that is written to."""
    root: Path = shutil.copytree(incident_store, tmp_path_factory.mktemp("do") / "store")
    return root


def _with_a_crowd(store: Path) -> None:
    """Thirty failures of one user within half a minute."""
    lines = ["JobID|Cluster|User|State|Start|End|NNodes|AllocTRES|NodeList"]
    lines += [f"{5000 + n}|c|evelyn|FAILED|2026-01-06T02:00:{n:02d}|2026-01-06T02:01:{n:02d}|1|"
              f"gres/gpu=8|n{n}" for n in range(30)]  # fmt: skip
    path = store.parent / "crowd.txt"
    path.write_text("\n".join(lines) + "\n")
    actions.ingest_files(store, "sacct", [str(path)], actions.Options(cluster="c", timezone="UTC"))


@pytest.mark.slow
def test_an_incident_is_acknowledged_here_and_on_its_page_until_undone(store: Path) -> None:
    before = _listed(store).due
    first = next(each for each in before if each.kind == "incident")
    assert first.page == "incident"
    assert first.gpu_hours is None, "the ledger is not built"
    made = actions.put_off(store, first.target, author="ann")
    after = _listed(store)
    assert first.target not in [each.target for each in after.due]
    assert [each.in_words for each in after.put_off] == ["acknowledged by ann"]
    with closing(Store.open(store)) as opened:
        rows = incidents.rows(opened, EVERYTHING, incidents.Kind(status="acknowledged"), limit=5)
    assert [f"incident:{each}" for each in rows["incident_id"]] == [first.target]
    actions.undo(store, made.annotation_id)
    assert _listed(store).due == before


@pytest.mark.slow
def test_a_snooze_ends_by_itself_and_its_row_is_known_when_all_is_derived_again(
    store: Path,
) -> None:
    source = next(each for each in _listed(store).due if each.kind == "source")
    before = State(store).version_of_answers(), State(store).version()
    made = actions.put_off(store, source.target, days=7, author="bob")
    after = State(store).version_of_answers(), State(store).version()
    assert after[0] == before[0], "a snooze changes no other answer"
    assert after[1] != before[1]
    until = datetime.fromisoformat(made.value)
    assert until > datetime.fromisoformat(made.made_at) + timedelta(days=6.9)
    (held,) = _listed(store, until - timedelta(hours=1)).put_off
    assert held.in_words == f"snoozed until {until:%-d %b %Y} by bob"
    assert _listed(store, until + timedelta(hours=1)).put_off == ()
    _with_a_crowd(store)
    (again,) = _listed(store, until - timedelta(hours=1)).put_off
    assert again.action.target == source.target
    actions.undo(store, made.annotation_id)


def test_what_is_no_row_and_no_length_of_time_is_refused(store: Path) -> None:
    with pytest.raises(DataError, match="the store holds no such incident"):
        actions.put_off(store, "incident:nope")
    with pytest.raises(DataError, match="target 'action:cause' is none"):
        actions.put_off(store, "action:cause")
    with pytest.raises(DataError, match="--days must be 1 to 366, got 0"):
        actions.put_off(store, target("cause", "x"), days=0)


@pytest.mark.slow
def test_the_command_prints_the_same_and_puts_off(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["actions", "--store", str(store), "--format", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    rows = printed["actions"]
    assert {row["kind"] for row in rows} >= {"incident", "source"}
    stakes = [row["stake_gpu_hours"] for row in rows if row["kind"] == "incident"]
    assert set(map(str, stakes)) == {"None"}, "the ledger is not built"
    assert set(printed["risen"]) >= {"split_at", "compares_halves", "causes"}
    assert main(["actions", "--store", str(store), "--snooze", rows[-1]["target"],
                 "--days", "3", "--format", "json"]) == 0  # fmt: skip
    made = json.loads(capsys.readouterr().out)
    assert made["field"] == "snoozed_until"
    assert main(["actions", "--store", str(store), "--format", "csv"]) == 0
    last = capsys.readouterr().out.strip().splitlines()[-1]
    assert "snoozed until" in last
    actions.undo(store, made["annotation_id"])


@pytest.mark.slow
def test_a_redacted_list_names_no_user(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _with_a_crowd(store)
    said = {}
    for option in ([], ["--redact"]):
        main(["actions", "--store", str(store), "--format", "json", *option])
        said[bool(option)] = capsys.readouterr().out
    assert "30 failures of user evelyn within 1 minute" in said[False]
    assert "evelyn" not in said[True]
    assert "30 failures of user " in said[True]
