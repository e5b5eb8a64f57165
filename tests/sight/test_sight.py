"""Where failures could be seen during none of the time, no answer and no report gives a verdict.

`-s` prints what each says, store by store; the slow tests take every store and period.
"""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from app.answers.fleet import overview
from app.answers.nodes import lemons
from app.answers.reliability import lives, mttf, sight
from app.ask import of_store
from app.show.terminal import plain
from data.filters import Selection
from data.store import Store
from tests.sight.stores import BEGIN, DAY, DAYS, STORES, Recorded, built
from tests.sight.walk import questions, walked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.sight.walk import Said

WHOLE = Selection()
BEYOND = Selection(from_at=BEGIN + 35 * DAY, to_at=BEGIN + 42 * DAY)
"""A week of which nothing is recorded."""
VERDICTS = re.compile(
    r"^well:|stands? out|nothing needs anybody|nothing can be regained|no work is known to be lost|"
    r"no GPU-hour is known to be lost|no incident (?:in|of|touches)|none began|no failure in|"
    r"rose or fell beyond chance|no node is worth|nothing failed|no attempt failed|all failed|"
    r"more against it than chance|0 by hardware|none has failed|all nodes are in service",
    re.IGNORECASE | re.MULTILINE,
)
"""What may be said of a fleet whose failures could be seen, and of no other."""
OF_JOBS = re.compile(r"no job ended|none of which hit a job|nothing can be regained|: 0 jobs hit")
"""What may be said where jobs were recorded, and nowhere else."""
NOT_OF_FAILURES = {
    "Preempted, GPU-h", "Held by own errors, GPU-h", "Exposure (node-days)", "Sources with records",
    "Critical or fatal events", "Idle, GPU-h", "Runs", "Failed attempts",
}  # fmt: skip
"""Numbers that may be 0 without sight of failures: accounting alone counts them."""
ZEROS = re.compile(
    r"rate_per_1000|^lost_gpu_hours$|^stake_|n_incidents$|^incidents$|^failures(?:_by|$)|regained|"
    r"counted_in_the_failure_rate|first_order|failures_per_run"
)
"""Keys of the JSON whose value is never 0 without sight."""
HOLDS = ("fleet.coverage.of_store", "fleet.coverage.answer")
"""Answers whose records count rows of the store."""
OF_THEIR_TIME = ("failures.incident.answer", "failures.job.answer", "report incident")
"""What is about one incident or job is of its own time, whatever the period."""
REFUSES = (
    "efficiency.ettr.answer", "efficiency.ledger.answer", "efficiency.what_if.answer",
    "failures.incidents.answer", "failures.incidents.listing", "failures.node.answer",
    "failures.summary.answer", "fleet.actions.listed.answer", "fleet.changed.answer",
    "fleet.overview.answer", "nodes.lemons.answer", "nodes.validation.answer",
    "reliability.mttf.answer", "report fleet", "report monday", "report node",
)  # fmt: skip
"""Answers with a verdict: each says in its words that there is none."""


@pytest.fixture(scope="module")
def store_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A store by its name, built when it is first asked for."""
    roots: dict[str, Path] = {}

    def named(name: str) -> Path:
        if name not in roots:
            roots[name] = built(STORES[name], tmp_path_factory.mktemp("sight"))
        return roots[name]

    return named


def zeros(value: Any, key: str = "") -> Iterator[str]:
    """Keys of a record whose 0 says that nothing failed, or what failures cost."""
    if isinstance(value, dict):
        known = value.get("definition") == "scheduler"  # whose records say which nodes it lost
        if "conf_level" in value and value.get("value") == 0 and ZEROS.search(key):
            yield key
        for name, each in value.items():
            yield from () if known and name in ("failures", key) else zeros(each, str(name))
    elif isinstance(value, list):
        for each in value:
            yield from zeros(each, key)
    elif value == 0 and value is not False and ZEROS.search(key):
        yield key


def unjudged(said: Said) -> Iterator[str]:
    """What one surface says that only sight of failures would allow."""
    yield from (match.group() for match in VERDICTS.finditer(said.everything))
    for each in said.numbers:
        if re.match(r"0(?: |$)", each.value) and each.term.label not in NOT_OF_FAILURES:
            yield f"{each.term.label} {each.value}"
    record = plain(said.record)
    if said.surface not in HOLDS:
        yield from zeros(_without_scheduler(record))
    if isinstance(record, list):
        yield from ("fine" for row in record if row.get("verdict") == "fine")


def _without_scheduler(record: Any) -> Any:
    """The record without the definition that rests on accounting alone."""
    if isinstance(record, dict) and "sensitivity" in record:
        rows = [row for row in record["sensitivity"] if row["definition"] != "scheduler"]
        return record | {"sensitivity": rows}
    return record


def told(name: str, said: list[Said]) -> None:
    """The table: what each surface says of a store."""
    print(f"\n## {name}\n\n| surface | says |\n|---|---|")
    for each in said:
        refused = [text for text in each.texts if sight.CANNOT in text]
        sentence = each.sentence or next(iter(refused), "")
        print(f"| {each.surface} | {sentence.replace('|', '/')} |")


def checked(name: str, root: Path, selection: Selection) -> None:
    """No verdict of a store and a period without sight."""
    said = [each for each in walked(root, selection) if each.surface not in OF_THEIR_TIME]
    told(name, said)
    found = {each.surface: list(unjudged(each)) for each in said}
    assert {surface: words for surface, words in found.items() if words} == {}
    silent = [each.surface for each in said if each.surface in REFUSES and not each.refused
              and sight.CANNOT not in each.everything]  # fmt: skip
    assert silent == []


def test_every_answer_is_in_the_walk() -> None:
    names = {name for name, _ in questions()}
    assert len(names) >= 30
    assert {name for name in REFUSES if not name.startswith("report")} <= names


def test_accounting_alone_is_judged_by_no_answer(store_of: Callable[[str], Path]) -> None:
    checked("accounting alone", store_of("accounting alone"), WHOLE)


@pytest.mark.slow
def test_a_week_that_no_record_reaches_is_judged_by_no_answer(
    store_of: Callable[[str], Path],
) -> None:
    checked("accounting alone, a week later", store_of("accounting alone"), BEYOND)


@pytest.mark.slow
@pytest.mark.parametrize("name", STORES)
def test_no_source_is_left_out_without_a_word(name: str, store_of: Callable[[str], Path]) -> None:
    root = store_of(name)
    checked(f"{name}, a week later", root, BEYOND)
    with closing(Store.open(root)) as store:
        seen = sight.sight(store, WHOLE)
    if seen.none:
        checked(name, root, WHOLE)
        return
    said = walked(root, WHOLE)
    told(name, said)
    if seen.jobs_unknown:
        found = [match.group() for each in said for match in OF_JOBS.finditer(each.everything)]
        assert found == []


@pytest.mark.slow
def test_a_record_has_the_same_keys_whatever_could_be_seen(
    store_of: Callable[[str], Path],
) -> None:
    keys: dict[str, set[tuple[str, ...]]] = {}
    for name, period in product(STORES, (WHOLE, BEYOND)):
        for each in walked(store_of(name), period):
            if isinstance(each.record, dict):
                keys.setdefault(each.surface, set()).add(tuple(sorted(each.record)))
    assert len(keys) >= 15
    assert {surface: found for surface, found in keys.items() if len(found) > 1} == {}


@pytest.mark.slow
def test_a_quiet_source_that_was_collected_is_a_true_zero(tmp_path: Path) -> None:
    root = built(STORES["covered and quiet"], tmp_path, ledger=False)
    with closing(Store.open(root)) as store:
        ask = of_store(store)
        rate = mttf.answer(ask, WHOLE).record["rate_per_1000_node_days"]
        assert (rate.value, rate.lower) == (0.0, 0.0)
        assert "stands out as a lemon" in lemons.answer(ask, WHOLE).sentence
        assert sight.CANNOT not in overview.answer(ask, WHOLE).sentence
        later = overview.answer(ask, BEYOND)
    assert later.sentence.startswith("How often the fleet fails cannot be judged: ")


@pytest.mark.slow
def test_a_cluster_without_sight_is_named_beside_one_with_it_and_half_a_time_is_told(
    tmp_path: Path,
) -> None:
    half = Recorded(("sacct",), ("health_events.kernel",), quiet_days=DAYS // 2)
    root = built(half, tmp_path, ledger=False)
    with closing(Store.open(root)) as store:
        ask = of_store(store)
        notes = lemons.answer(ask, Selection(from_at=BEGIN)).notes
        assert (
            "Failures could be seen on 7 of 14 days: of the others nodes cannot be judged." in notes
        )
        first, last = (
            sight.sight(store, Selection(from_at=at, to_at=at + timedelta(days=7)))
            for at in (BEGIN, BEGIN + timedelta(days=7))
        )
    assert (first.seen, last.none) == (7, True)
    built(Recorded(("sacct",), cluster="blind"), tmp_path, ledger=False)
    with closing(Store.open(root)) as store:
        found = sight.sight(store, WHOLE)
        notes = " ".join(lemons.answer(of_store(store), WHOLE).notes)
        lived, of_seen = lives.of_nodes(store, WHOLE), replace(WHOLE, cluster="c")
        assert lived.lives.exposure == lives.of_nodes(store, of_seen).lives.exposure
        assert lived.lives.exposure > 0
        assert any("Of blind how long nodes run cannot be judged" in note for note in lived.notes)
    assert (found.none, found.blind) == (False, ("blind",))
    assert "Of blind nodes cannot be judged: no failure could be seen there." in notes
    assert "faultline ingest kernel-log" in notes
