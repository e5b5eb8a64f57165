"""A month played again: eight nodes by hand, records that lack something, the command."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from analytics.efficiency.best_interval import best_interval as interval_of
from analytics.efficiency.habits import Habit, Habits
from analytics.efficiency.what_if import Change
from analytics.efficiency.what_if import what_if as what_if_of
from analytics.errors import OutOfRangeError
from analytics.estimate import Estimate
from analytics.reliability.sight import ClusterSight, Sight
from app.answers.efficiency import best_interval, what_if
from app.answers.efficiency.left_out import Chosen
from app.answers.efficiency.what_if import Shown, Wish
from app.answers.nodes.judged_nodes import verdicts
from app.ask import of_store, once
from app.cli import main
from data.errors import DataError
from data.filters import Selection
from data.store import Store
from tests.analytics.efficiency.simulated_cluster import Cluster
from tests.app.replayed_store import IN_JANUARY, OF_EACH, made, rows, stored

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from app.answers.content import Answer
    from app.ask import Ask

AS_WAS = Wish(worst=0, interval=None)
WORST = Wish(worst=1, interval=None)
BEST = Wish(worst=0)
HOURLY = Habit(interval_s=3600, write_s=60, restart_s=300)
STATED = Habits(HOURLY, (HOURLY,) * 4, "configured", 0, None)
CLUSTER = Cluster.drawn(np.random.default_rng(3), spread=0.0)
ATTEMPTS = CLUSTER.attempts(CLUSTER.month(np.random.default_rng(4)))
DECEMBER, JANUARY = datetime(2025, 12, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("replayed"))


@pytest.fixture(scope="module")
def ask(site: Path) -> Iterator[Ask]:
    with closing(Store.open(site)) as store:
        yield once(of_store(store))


def played(ask: Ask, wish: Wish, **selected: Any) -> Answer:
    return what_if.answer(ask, replace(Selection(), **selected), wish)


def test_the_month_without_its_worst_node_is_what_a_hand_counts(ask: Ask) -> None:
    answer = played(ask, WORST)
    found, (node,) = answer.record, answer.record["nodes"]
    assert (found["from_at"], found["to_at"]) == (JANUARY, datetime(2026, 2, 1, tzinfo=UTC))
    assert (found["chosen"], node.node, node.failures) == ("before", "n1", IN_JANUARY)
    assert found["gross"] == pytest.approx(IN_JANUARY * OF_EACH, rel=1e-6)
    assert node.usual == pytest.approx(1 / 7, rel=0.05)  # n5 failed once, six others never
    regained = found["regained"]
    assert regained.value == pytest.approx((IN_JANUARY - node.usual) * OF_EACH, rel=1e-6)
    assert regained.lower < regained.value < regained.upper
    assert regained.conf_level is None  # nothing says how these runs save
    assert found["capacity_gpu_hours"] == 8 * 31 * 24
    assert found["waited"].value == 0.0  # each attempt started when it was submitted
    assert answer.sentence.startswith("74.4 GPU-hours regained (")
    assert answer.sentence.endswith(
        ", assumed), 5,950 given up, without n1, in January 2026 (UTC)."
    )
    assert answer.numbers[0].basis.endswith("; of 711 as it was; 149 EUR")
    assert answer.notes[0].startswith("Chosen by what was known before")


def test_nothing_changed_regains_nothing_and_the_best_interval_is_the_lowest(ask: Ask) -> None:
    answer = played(ask, AS_WAS)
    assert answer.sentence == "Nothing is changed: January 2026 (UTC) as it was."
    for wish in (AS_WAS, replace(AS_WAS, interval=60.0)):  # hourly, as is assumed of them anyway
        assert played(ask, wish).record["regained"].value == 0.0
    best = played(ask, replace(AS_WAS, interval="best")).record
    assert best["regained"].value > 0
    curve = best["curve"].set_index("minutes")["gpu_hours"]
    assert curve.idxmin() == best["interval_min"] == best["best_min"].value > 60


@pytest.mark.slow
def test_hindsight_is_said_and_counts_for_less(ask: Ask) -> None:
    before = played(ask, WORST).record
    within = played(ask, replace(WORST, by="within")).record
    named = played(ask, replace(WORST, nodes=("N1",))).record
    assert (within["chosen"], named["chosen"]) == ("within", "named")
    assert within["nodes"][0].node == named["nodes"][0].node == "n1"
    assert 0 < within["regained"].value < before["regained"].value
    assert within["regained"] == named["regained"]
    first = played(ask, WORST, from_at=DECEMBER, to_at=JANUARY)
    assert first.record["chosen"] == "nobody"  # nothing is recorded before December
    assert first.notes[0].startswith("Before the period nothing was known against any node")


def held_beside(ask: Ask) -> int:
    """Compares what Lemons and What if say of the same nodes and days; so many numbers."""
    n = 0
    for of in ask(verdicts, Selection(), days=28.0, conf_level=0.9):
        names = {at: each.node for at, each in enumerate(of.nodes) if at in of.saved}
        drained = [each.node for each in of.nodes if each.verdict == "lemon"]
        assert of.computed or not names
        sets = [(of.saved[at], [name]) for at, name in names.items()]
        for saved, nodes in [(of.saved_by_all, drained), *sets]:
            if nodes:
                again = what_if.answer(ask, of.window.selection, Wish(nodes=tuple(nodes)))
                found = again.record["by_nodes"]
                bounds = [(one.value, one.lower, one.upper) for one in (found, saved)]
                assert bounds[0] == pytest.approx(bounds[1], rel=1e-12)
                assert (found.conf_level, found.n) == (saved.conf_level, saved.n)
                n += 1
        assert not drained or of.without.regained_gpu_hours == of.saved_by_all
    return n


def test_lemons_and_what_if_say_the_same_of_the_same_nodes(ask: Ask) -> None:
    assert held_beside(ask) >= 2


@pytest.mark.slow
def test_lemons_and_what_if_say_the_same_of_the_demo(demo_store: Path) -> None:
    with closing(Store.open(demo_store)) as store:
        assert held_beside(once(of_store(store))) >= 2


UNCOUNTED = "3 attempts that ran state no GPUs and are not counted."


def said(attempts: pd.DataFrame, wish: Wish, *nodes: tuple[str, str], of: Habits = STATED) -> Shown:
    """A month of the simulated cluster, of which nothing else is known."""
    change = Change(nodes, interval_min=wish.interval)
    habits = {"several_nodes": of, "one_node": of}
    found = what_if_of(attempts, habits, CLUSTER.exposure(), change)
    chosen = Chosen(nodes, "before" if nodes else "", {})
    answers = {"habits": of, "habit_notes": (), "uncounted": (UNCOUNTED,), "zone": "UTC",
               "node_gpus": pd.DataFrame({"cluster": [], "node": [], "gpus": []}),
               "sight": Sight((ClusterSight("c", 31, 31, 31),))}  # fmt: skip
    month = Selection(from_at=DECEMBER, to_at=JANUARY)
    return Shown(lambda asked, *_: answers[asked.__name__], month, wish, chosen, found, None)


@pytest.mark.parametrize(
    ("write_s", "said", "value"),
    [
        ((60, 60), "no more often than every 85.9 min: no failure was seen, at 0", "at least 85.9 min"),
        ((0, 60), "is not known: no failure was seen, and writing may stop no run.", "unknown"),
    ],
)  # fmt: skip
def test_without_a_failure_the_best_interval_has_a_least_or_is_unknown(
    write_s: tuple[int, int], said: str, value: str
) -> None:
    habits = replace(STATED, corners=tuple(replace(HOURLY, write_s=s) for s in write_s) * 2)
    found = interval_of(1024, Estimate(0.0, 0.0, 3.0, 0.9, 0), habits, conf_level=0.9)
    assert said in best_interval.sentence(found)
    assert best_interval.number(found).value == value


def test_what_is_not_counted_is_told_even_where_nothing_else_is_known() -> None:
    calm = ATTEMPTS.assign(bucket=None, node=None)
    assert [*said(ATTEMPTS, BEST).notes()][-1] == UNCOUNTED
    assert [*said(calm, BEST).notes()] == [UNCOUNTED]


def test_failures_that_name_no_node_are_counted_where_nodes_are_left_out() -> None:
    failed = ATTEMPTS.index[ATTEMPTS["bucket"].notna()]
    some = ATTEMPTS.assign(node=ATTEMPTS["node"].drop(failed[:4]))
    node = ("c", str(some["node"].dropna().iloc[0]))
    assert f"4 of {len(failed)} failures of the infrastructure name no node" in " ".join(
        said(some, WORST, node).notes()
    )
    assert "name no node" not in " ".join(said(ATTEMPTS, WORST, node).notes())


def test_fewer_nodes_than_were_asked_for_are_explained() -> None:
    node = ("c", str(ATTEMPTS["node"].dropna().iloc[0]))
    few = "Nothing speaks against more than 1 node."
    assert few in said(ATTEMPTS, Wish(worst=3, interval=None), node).notes()
    assert few not in said(ATTEMPTS, WORST, node).notes()
    assert few not in said(ATTEMPTS, Wish(nodes=(node[1],), interval=None), node).notes()


@pytest.mark.parametrize(
    ("attempts", "write_s", "why"),
    [
        (ATTEMPTS.assign(several=False), 60, "No run on several nodes was interrupted, so no"),
        (ATTEMPTS.assign(again=False, ran_s=ATTEMPTS["ran_s"].where(ATTEMPTS["node"].isna(), 0)),
         60, "Interruptions took no work of runs on several nodes, so no"),
        (ATTEMPTS, 0, "Writing costs nothing here, so no"),
        (ATTEMPTS, 0.01, "would have lost least with 1 min (at most "),
    ],
    ids=["one node", "nothing lost", "free", "next to nothing"],
)  # fmt: skip
def test_why_no_interval_is_best(attempts: pd.DataFrame, write_s: float, why: str) -> None:
    habit = replace(HOURLY, write_s=write_s)
    shown = said(attempts, BEST, of=replace(STATED, central=habit, corners=(habit,) * 4))
    assert why in " ".join(shown.notes())
    assert (shown.found.interval_min is None) == why.endswith("so no")


def test_a_range_of_what_is_lost_more_says_that_it_is_assumed() -> None:
    wide = tuple(replace(HOURLY, write_s=write_s) for write_s in (30, 30, 300, 300))
    assumed = replace(STATED, corners=wide, basis="assumed")
    sentence = said(ATTEMPTS, replace(AS_WAS, interval=5.0), of=assumed).sentence()
    assert " GPU-hours more would be lost (" in sentence
    assert ", assumed), with checkpoints every 5 min, in " in sentence


def test_filters_change_the_answer_and_a_size_that_nobody_has_leaves_nothing(ask: Ask) -> None:
    whole, half = (
        played(ask, AS_WAS, **given).record["n_interruptions"]
        for given in ({}, {"from_at": datetime(2026, 1, 16, tzinfo=UTC)})
    )
    assert (whole, 0 < half < whole) == (IN_JANUARY + 1, True)
    far = played(ask, WORST, from_at=JANUARY, to_at=datetime(2030, 1, 1, tzinfo=UTC)).record
    assert far["capacity_gpu_hours"] == 8 * (31 * 24 + 20), "records end on 1 February at 20:00"
    none = played(ask, Wish(), min_gpus=17)
    assert none.sentence.startswith("What could be regained cannot be judged")
    assert none.numbers[0].value == "unknown"


@pytest.mark.slow
def test_the_best_interval_is_of_the_size_asked_for(ask: Ask) -> None:
    usual, small, large = (
        played(ask, replace(AS_WAS, gpus=gpus)).record["best_interval"] for gpus in (None, 16, 1024)
    )
    assert usual == small
    assert large.exact_min.value < small.exact_min.value / 7
    assert large.exact_min.lower < large.exact_min.value < large.exact_min.upper


def test_a_job_of_no_gpus_is_refused(ask: Ask) -> None:
    with pytest.raises(OutOfRangeError, match="pass the GPUs of the job"):
        played(ask, replace(AS_WAS, gpus=0))


def test_a_node_that_is_not_there_is_refused(ask: Ask) -> None:
    with pytest.raises(DataError, match="did you mean 'n1'"):
        played(ask, Wish(nodes=("n1x",)))


def test_the_command_prints_the_same_and_hides_names(
    ask: Ask, site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["whatif", "--store", str(site), "--worst", "1", "--interval-min", "30", "--redact"]
    assert main([*given, "--format", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    regained = played(ask, Wish(worst=1, interval=30.0)).record["regained"]
    assert printed["regained"]["value"] == regained.value
    assert printed["runs"]
    assert not any(row["name"].startswith("train") for row in printed["runs"])


def test_an_interval_that_is_none_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["whatif", "--interval-min", "0"])
    assert "minutes above 0, best or as-was, got '0'" in capsys.readouterr().err


def test_an_empty_store_is_one_line(empty_store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["whatif", "--store", str(empty_store)]) == 2
    assert "no record of the store has a time" in capsys.readouterr().err


@pytest.mark.slow
def test_without_names_of_nodes_the_nodes_are_unknown_and_the_interval_is_not(
    tmp_path: Path,
) -> None:
    with closing(Store.open(made(tmp_path / "unnamed", named=False))) as store:
        found = played(of_store(store), Wish(interval=30.0)).record
    assert (found["nodes"], found["n_named"]) == ([], 0)
    assert found["n_interruptions"] == IN_JANUARY + 1
    assert found["regained"].value == found["by_interval"].value


@pytest.mark.slow
@pytest.mark.parametrize(
    ("of", "said"),
    [(1, "No job of c states GPUs: "), (3, "44 attempts that ran state no GPUs and are not c")],
    ids=["all", "every third"],
)
def test_attempts_without_gpus_are_told(tmp_path: Path, of: int, said: str) -> None:
    lines = rows(named=True).splitlines(True)
    lines[::of] = [line.replace("gres/gpu=16", "") for line in lines[::of]]
    with closing(Store.open(stored(tmp_path, "".join(lines)))) as store:
        notes = played(of_store(store), AS_WAS).notes
    assert any(note.startswith(said) for note in notes)
