"""The bars of policies: the best first, the base always among them, nothing that sums wrongly."""

from __future__ import annotations

import pytest

from analytics.recovery.comparison import Trial, outcome, ranking
from analytics.recovery.histories import Hazards
from analytics.recovery.policy import Site, policies
from app.figures.recovery import policies_ranked

SITE = Site(hazards=Hazards(nodes=64, rates={"node": 20.0, "process": 5.0}), queue_min=30.0)


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_bars_sum_to_what_is_not_productive_and_the_base_is_the_last(mode: str) -> None:
    trial = Trial(site=SITE, runs=4, days=5.0)
    ranked = ranking(trial, [outcome(trial, key) for key in policies()])
    chart = policies_ranked.figure(ranked, mode=mode)  # type: ignore[arg-type]
    drawn = policies_ranked.shown(ranked)
    assert drawn[-1].policy.key == "persistent"
    assert len(drawn) == policies_ranked.MOST_DRAWN + 1
    for place, each in enumerate(drawn):
        bar = sum(trace.x[place] for trace in chart.data)
        assert bar == pytest.approx(100 * (1 - each.ettr.value))
    assert chart.layout.xaxis.title.text.endswith("(%)")
    notes = [note.text for note in chart.layout.annotations]
    assert f"ETTR {drawn[0].ettr.value:.3f}" in notes
