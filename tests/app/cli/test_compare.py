"""faultline compare: definitions of others, computed by hand on a small log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SACCT = """JobID|Cluster|State|Start|End|NNodes|AllocTRES|NodeList
1|c|COMPLETED|2026-01-05T00:00:00|2026-02-14T00:00:00|4|gres/gpu=32|n[1-4]
"""
EVENTS = """ClusterName|NodeName|TimeStart|TimeEnd|State|Reason|User
c|n1|2026-01-06T00:00:00|2026-01-07T00:00:00|DOWN|Not responding|root
c|n1|2026-01-16T00:00:00|2026-01-18T00:00:00|DOWN|Not responding|root
c|n2|2026-01-20T00:00:00|2026-01-21T00:00:00|MAINT|firmware|ops
c|n3|2026-02-13T00:00:00|2026-02-13T12:00:00|DRAIN|check|ops
"""


def test_each_definition_is_that_of_its_source(
    faultline: Callable[..., Any], tmp_path: Path
) -> None:
    """Four nodes, forty days: n1 out twice, ten days apart, n2 for planned work, n3 in the last
    week, n4 never."""
    root = tmp_path / "store"
    for source, text in (("sacct", SACCT), ("sacctmgr-events", EVENTS)):
        path = tmp_path / f"{source}.txt"
        path.write_text(text)
        assert faultline("ingest", source, path, "--store", root).code == 0
    rows = faultline("compare", "--store", root, "--format", "json").json
    of = {row["definition"]: row["value"] for row in rows}
    calendar = 4 * 40 * 24
    assert rows[0]["ours"] == pytest.approx((calendar - 4.5 * 24) / 3)
    assert of["calendar time over outages"] == pytest.approx(calendar / 4)
    assert of["mean gap between outages of a node"] == pytest.approx(240)
    assert of["mean of nodes that failed"] == pytest.approx((480 + 960) / 2)
    assert of["down"] == pytest.approx(3.5 / 160)
    assert of["planned down"] == pytest.approx(1 / 160)
    assert of["allocated"] == pytest.approx(1.0)
    week = of["calendar time over outages, last 7 days"]
    assert week == pytest.approx(calendar * 7 / 40, rel=0.05)
    assert all(row["why_it_differs"].endswith(".") for row in rows)
    out = faultline("compare", "--store", root, "--format", "table").out
    assert "times the" in out
    assert "NVSentinel" in out


def test_without_records_of_outages_nothing_is_compared(
    faultline: Callable[..., Any], sacct_store: Path
) -> None:
    said = faultline("compare", "--store", sacct_store, "--format", "json")
    assert (said.code, said.json) == (0, [])
    out = faultline("compare", "--store", sacct_store, "--format", "table").out
    assert "cannot be judged" in out
