"""faultline availability: against a direct computation, and records that say little."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

LANL = Path(__file__).resolve().parents[4] / "shared" / "data" / "lanl"
SACCT = """JobID|Cluster|State|Start|End|NNodes|AllocTRES|NodeList
1|c|COMPLETED|2026-01-05T00:00:00|2026-01-15T00:00:00|2|gres/gpu=16|n[1-2]
2|c|COMPLETED|2026-01-13T00:00:00|2026-01-15T00:00:00|1|gres/gpu=8|n3
"""
EVENTS = """ClusterName|NodeName|TimeStart|TimeEnd|State|Reason|User
c|n1|2026-01-06T00:00:00|2026-01-06T06:00:00|DOWN|Not responding|root
c|n1|2026-01-06T06:00:00|2026-01-07T00:00:00|DOWN+DRAIN|bad DIMM|ops
c|n2|2026-01-08T00:00:00|Unknown|DRAIN|check|ops
c|n3|2026-01-12T00:00:00|Unknown|DOWN|Not responding|root
c|n2|2026-01-10T00:00:00|2026-01-10T12:00:00|DRAIN+MAINT|firmware|ops
"""


@pytest.fixture
def store(faultline: Callable[..., Any], tmp_path: Path) -> Path:
    """Three nodes, ten days: n1 is one outage in two states; of n2 the first record has no end, but
    a later one; n3 has none, but a job started on it a day later."""
    root = tmp_path / "store"
    for source, text in (("sacct", SACCT), ("sacctmgr-events", EVENTS)):
        path = tmp_path / f"{source}.txt"
        path.write_text(text)
        said = faultline("ingest", source, path, "--store", root)
        assert said.code == 0, said
    return root


def test_outages_without_an_end_last_until_something_shows_the_node_again(
    faultline: Callable[..., Any], store: Path
) -> None:
    found = faultline("availability", "--store", store, "--format", "json").json
    of = {part["name"]: part for part in found["by_node"]}
    days = {name: part["node_seconds"] / 86_400 for name, part in of.items()}
    down = {name: part["down_ratio"] * days[name] for name, part in of.items()}
    drained = {name: part["drained_ratio"] * days[name] for name, part in of.items()}
    planned = {name: part["planned_ratio"] * days[name] for name, part in of.items()}
    assert down == pytest.approx({"n1": 1.0, "n2": 0.0, "n3": 1.0})
    assert drained == pytest.approx({"n1": 0.0, "n2": 2.0, "n3": 0.0})
    assert planned == pytest.approx({"n1": 0.0, "n2": 0.5, "n3": 0.0})
    assert {name: part["outages"] for name, part in of.items()} == {"n1": 1, "n2": 1, "n3": 1}
    assert (found["repairs"], found["open_outages"]) == (3, [])
    assert found["mean_repair_hours"]["value"] == pytest.approx((24 + 48 + 24) / 3)
    assert found["repair_clock"] == "from out of service to return"
    ratio = found["availability"]["value"]
    assert ratio == pytest.approx(1 - 4.5 / sum(days.values()))
    assert found["serviceability"]["value"] == pytest.approx(1 - 4 / (sum(days.values()) - 0.5))
    header, *rows = faultline("availability", "--store", store, "--format", "csv").out.splitlines()
    assert header.startswith("node,cluster,available,down,drained,planned")
    assert len(rows) == 3


def test_nodes_that_only_their_outages_name_are_not_judged(
    faultline: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "events.txt"
    path.write_text(EVENTS)
    assert faultline("ingest", "sacctmgr-events", path, "--store", tmp_path / "s").code == 0
    found = faultline("availability", "--store", tmp_path / "s", "--format", "json").json
    assert found["availability"]["value"] is None
    said = faultline("availability", "--store", tmp_path / "s", "--format", "table")
    assert "which nodes there were is not known" in said.out


def test_what_was_still_out_is_of_the_end_of_the_period(
    faultline: Callable[..., Any], store: Path
) -> None:
    found = faultline(
        "availability", "--store", store, "--to", "2026-01-09", "--format", "json"
    ).json
    assert [(row["node"], row["state"]) for row in found["open_outages"]] == [("n2", "DRAIN")]


def test_a_partition_has_no_availability(faultline: Callable[..., Any], sacct_store: Path) -> None:
    out = faultline(
        "availability", "--store", sacct_store, "--partition", "gpu", "--format", "table"
    ).out
    assert out.startswith("Availability is told of whole clusters")
    found = faultline(
        "availability", "--store", sacct_store, "--partition", "gpu", "--format", "json"
    ).json
    assert found["availability"]["value"] is None
    assert "whole clusters" in found["reason"]


def test_accounting_alone_judges_no_availability(
    faultline: Callable[..., Any], sacct_store: Path
) -> None:
    said = faultline("availability", "--store", sacct_store, "--format", "json").json
    assert said["availability"]["value"] is said["mtbf_hours"]["value"] is None
    assert said["clusters_not_judged"] == ["c"]
    out = faultline("availability", "--store", sacct_store, "--format", "table").out
    assert out.startswith("Availability cannot be judged")
    assert "faultline ingest sacctmgr-events" in out


def test_the_demo_has_planned_and_unplanned_outages_apart(
    faultline: Callable[..., Any], demo_store: Path
) -> None:
    found = faultline("availability", "--store", demo_store, "--format", "json").json
    parts = [found[name]["value"] for name in ("availability", "planned_ratio", "unplanned_ratio")]
    assert sum(parts) == pytest.approx(1.0)
    assert min(parts) > 0
    assert found["down_ratio"]["value"] + found["drained_ratio"]["value"] == pytest.approx(parts[2])
    weeks = found["by_week"]
    assert sum(week["node_days"] for week in weeks) == pytest.approx(found["node_seconds"] / 86_400)


@pytest.mark.slow
@pytest.mark.parametrize("system", [18, 19, 20])
def test_repairs_of_los_alamos_are_those_of_its_table(
    faultline: Callable[..., Any], lanl_store: Path, system: int
) -> None:
    """Mean and percentiles of the column of minutes down, read by pandas alone."""
    (path,) = LANL.glob("*.csv")
    rows = pd.read_csv(path, low_memory=False, encoding="latin-1")
    minutes = rows.loc[rows["System"] == system, "Down Time"].astype(float)
    minutes = minutes[minutes >= 0]
    found = faultline(
        "availability", "--store", lanl_store, "--cluster", f"lanl-{system}", "--format", "json"
    ).json
    assert found["repairs"] == len(minutes)
    assert found["mean_repair_hours"]["value"] == pytest.approx(minutes.mean() / 60)
    for percent, hours in found["repair_hours_percentiles"].items():
        direct = np.quantile(minutes / 60, int(percent) / 100, method="inverted_cdf")
        assert hours["value"] == pytest.approx(direct), percent
    mttf = faultline(
        "mttf", "--store", lanl_store, "--cluster", f"lanl-{system}", "--format", "json"
    )
    assert mttf.json["mean_repair_hours"] == pytest.approx(found["mean_repair_hours"])
    said = faultline("availability", "--store", lanl_store, "--cluster", f"lanl-{system}",
                     "--format", "table")  # fmt: skip
    assert re.search(r"Planned +unknown", said.out)
