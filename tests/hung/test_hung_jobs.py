"""Simulated hung jobs whose fault is known: right, or ambiguous with the right rank among them."""

from __future__ import annotations

from collections import Counter

import pytest

from analytics.training.hangs.verdict import hang
from data.ingest.formats.plain_pickle import plain_pickle
from data.ingest.readers.training.flight_dump import flight_dump
from tests.hung.cluster import pickled
from tests.hung.scenarios import KINDS, Scenario, scenario

FEW, MANY = 3, 34
"""Jobs of each kind; six kinds make 204."""


def judged(one: Scenario) -> str:
    dumps = [
        flight_dump(plain_pickle(pickled(dump), "dump"), f"_dump_{rank}").dump
        for rank, dump in one.dumps.items()
    ]
    found = hang(dumps)
    if found.verdict == "found":
        return "right" if set(found.ranks) <= one.faulty else "wrong"
    among = found.verdict == "ambiguous" and one.faulty <= set(found.ranks)
    return "ambiguous" if among else "wrong"


@pytest.mark.parametrize("kind", KINDS)
def test_no_verdict_on_a_few_hung_jobs_is_wrong(kind: str) -> None:
    assert "wrong" not in {judged(scenario(kind, seed)) for seed in range(FEW)}


@pytest.mark.slow
def test_no_verdict_on_200_hung_jobs_is_wrong() -> None:
    score = Counter((kind, judged(scenario(kind, seed))) for kind in KINDS for seed in range(MANY))
    for kind in KINDS:
        print(f"{kind}: {score[kind, 'right']} right, {score[kind, 'ambiguous']} ambiguous")
    assert not [key for key in score if key[1] == "wrong"]
    assert sum(n for (_, how), n in score.items() if how == "right") >= 0.8 * score.total()
    assert all(score[kind, "right"] for kind in KINDS)
