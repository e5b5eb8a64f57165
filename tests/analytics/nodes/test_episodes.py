"""Records of one occasion count once, shared failures by their share."""

from __future__ import annotations

import pandas as pd

from analytics.nodes.episodes import episodes
from analytics.nodes.records import NodeRecords

NAN = float("nan")


def of(*rows: tuple[object, ...]) -> NodeRecords:
    names = ["place", "day", "until_day", "signal", "share", "user", "evident"]
    nodes = pd.DataFrame({"node": ["a", "b", "c"]})
    return NodeRecords("c", 28.0, nodes, pd.DataFrame(rows, columns=names), frozenset())


def test_a_failure_its_outage_and_what_the_repair_writes_are_one_occasion() -> None:
    found = episodes(of(
        (0, 1.0, NAN, "job_failure", 1.0, "u", True),
        (0, 1.01, 5.0, "out", 1.0, None, True),
        (0, 4.0, NAN, "ticket", 1.0, None, True),
        (0, 9.0, NAN, "xid", 1.0, None, True),
    ))  # fmt: skip
    assert found.counts(3)[0].tolist() == [1, 0, 0, 1, 0]


def test_failures_that_no_record_lays_on_one_node_count_by_their_share() -> None:
    rows = [(0, 2.0 * day, NAN, "job_failure", 0.25, f"u{day}", False) for day in range(9)]
    assert episodes(of(*rows)).counts(3)[0].tolist() == [2, 0, 0, 0, 0]


def test_one_bad_week_counts_once_and_one_user_can_be_left_out() -> None:
    rows = [(0, float(day), NAN, "job_failure", 1.0, "pinned", False) for day in (1, 3, 5)]
    rows += [(0, 20.0, NAN, "out", 1.0, None, True)]
    found = episodes(of(*rows))
    assert found.counts(3)[0].tolist() == [3, 1, 0, 0, 0]
    assert found.worst_week_as_one().counts(3)[0].tolist() == [1, 1, 0, 0, 0]
    assert found.without_top_user().counts(3)[0].tolist() == [0, 1, 0, 0, 0]
