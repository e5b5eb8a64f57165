"""Whether planted lemons are found: precision, recall and GPU-hours saved on two generators."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

import pytest

from app.answers.nodes import lemons
from app.ask import of_store
from data.filters import Selection
from data.store import Store
from tests.lemons.planted import GENERATORS, MONTH, Planted, score

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

SEEDS = range(5)

_OCCASIONS = """
SELECT node, start_at AS at FROM node_events WHERE planned IS NOT true
UNION ALL
SELECT node, min(observed_at) FROM health_events WHERE xid NOT IN (13, 31, 43)
GROUP BY node, date_trunc('day', observed_at)
"""
"""Outages, and days with kernel lines of GPUs that no program of a user causes."""


def counted(store: Store, at: datetime) -> list[str]:
    """Nodes with five occasions or more in the 28 days before, counted without any weighing."""
    rows = store.frame(_OCCASIONS)
    n = rows.loc[rows["at"].between(at - MONTH, at), "node"].value_counts()
    return [str(node) for node in n.index[n >= 5]]


def by_the_command(store: Store, at: datetime) -> list[str]:
    """Nodes that `faultline lemons` says to drain, or would if that were sure to save anything."""
    found = lemons.answer(of_store(store), Selection(to_at=at))
    return [row["node"] for row in found.record if lemons.stands_out(row)]


class Question(NamedTuple):
    """What names the lemons of a store at a time, and how well it must do."""

    lemons: Callable[[Store, datetime], list[str]]
    precision: float
    recall: float
    saved_within: float
    """Share of GPU-hours by which what is saved may lie from what the truth would save."""


QUESTIONS = {
    "a plain count": Question(counted, 0.75, 0.8, 0.1),
    "faultline lemons": Question(by_the_command, 0.90, 0.85, 0.05),
}


@pytest.fixture(scope="module", params=GENERATORS)
def planted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[Planted]:
    """Stores of several seeds."""
    make = GENERATORS[request.param]
    return [make(seed, tmp_path_factory.mktemp(f"lemons{seed}-")) for seed in SEEDS]


@pytest.mark.slow
@pytest.mark.parametrize("name", QUESTIONS)
def test_lemons_are_found(planted: list[Planted], name: str) -> None:
    question, judged = QUESTIONS[name], []
    for one in planted:
        with closing(Store.open(one.store)) as store:
            judged.append(one.judge(question.lemons(store, one.at)))
    found = score(judged)
    print(f"\n{name}: {found}", *judged, sep="\n")
    assert sum(one.n_lemons for one in judged) == 24 * len(planted)
    assert min(expected for one in planted for expected in one.lemons.values()) >= 6
    assert found.precision >= question.precision
    assert found.recall >= question.recall
    assert abs(found.saved - found.saved_by_truth) <= question.saved_within
