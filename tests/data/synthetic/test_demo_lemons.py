"""Lemons of the demo: of differing kinds, and as bad as the truth says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

from data.synthetic import DemoSpec, demo_cluster
from data.synthetic.fleet import LEMON_KINDS, planted_lemons

if TYPE_CHECKING:
    from data.synthetic import DemoCluster


def occasions(demo: DemoCluster) -> pd.DataFrame:
    """What happened to each node, counted from the tables: one column a kind of occasion."""
    tables, nodes = demo.tables, demo.tables["nodes"]["node"].to_pylist()
    outages = tables["node_events"].to_pandas().astype({"node": str, "reason": str})
    drained = outages[outages["reason"].str.endswith("drained for inspection")]
    lines = tables["health_events"].to_pandas().query("xid == 92").astype({"node": str})
    jobs = tables["jobs"].select(["excluded_nodes"]).to_pandas().astype(str)
    struck = outages[~outages["planned"] & ~outages.index.isin(drained.index)]
    counts = {
        "failure": struck["node"],
        "drain": drained["node"],
        "storm": lines.assign(hour=lines["observed_at"].dt.floor("h"))
        .drop_duplicates(["node", "hour"])["node"],
        "exclusion": jobs["excluded_nodes"],
    }  # fmt: skip
    return pd.DataFrame(
        {name: of.value_counts().reindex(nodes, fill_value=0) for name, of in counts.items()}
    )


def expected(demo: DemoCluster, days: float) -> pd.DataFrame:
    """What the truth expects of each lemon in so many days."""
    rows = {lemon["node"]: lemon["expected"] for lemon in demo.truth.lemon_nodes}
    return pd.DataFrame.from_dict(rows, orient="index") * days / 28


def test_lemons_have_the_occasions_that_the_truth_expects(default_demo: DemoCluster) -> None:
    happened, planted = occasions(default_demo), expected(default_demo, 90)
    lemons = happened.loc[planted.index]
    healthy = happened.drop(planted.index)
    anyway = healthy[["drain", "exclusion"]].mean().sum() * len(planted)
    total = planted.to_numpy().sum() + anyway
    assert [lemon["kind"] for lemon in default_demo.truth.lemon_nodes] == [
        *("row_remap", "flapping", "nic_flaps")
    ]
    assert lemons.to_numpy().sum() == pytest.approx(total, abs=4 * np.sqrt(total))
    assert healthy["failure"].mean() < 2
    assert healthy["storm"].sum() == 0
    assert (lemons.sum(axis=1) > healthy.sum(axis=1).max()).all()


def test_lemons_of_two_thousand_nodes_are_24_of_eight_kinds_and_a_third_of_all_failures() -> None:
    lemons = planted_lemons(2000, np.random.default_rng(1))
    kinds = pd.Series([lemon.kind.name for lemon in lemons.values()])
    assert kinds.value_counts().to_dict() == dict.fromkeys((one.name for one in LEMON_KINDS), 3)
    share = sum(lemon.strikes for lemon in lemons.values()) / (0.0065 * 0.83 * 28 * 2000)
    assert 0.3 < share < 0.45


@pytest.mark.parametrize(("n_nodes", "n_lemons"), [(15, 0), (16, 1), (64, 1), (256, 3)])
def test_small_fleets_have_a_lemon_that_causes_at_most_half_of_their_failures(
    n_nodes: int, n_lemons: int
) -> None:
    lemons = planted_lemons(n_nodes, np.random.default_rng(1))
    assert len(lemons) == n_lemons
    share = sum(lemon.strikes for lemon in lemons.values()) / (0.0065 * 0.83 * 28 * n_nodes)
    assert share <= 0.5 + 1e-9


def test_who_excludes_a_node_says_so_on_the_command_line(default_demo: DemoCluster) -> None:
    jobs = default_demo.tables["jobs"].select(["excluded_nodes", "submit_line"]).to_pandas()
    excluding = jobs[jobs["excluded_nodes"].notna()]
    said = excluding["submit_line"].astype(str).str.extract(r"--exclude=(\S+)", expand=False)
    assert len(excluding) > 200
    assert (said == excluding["excluded_nodes"].astype(str)).all()
    others = jobs.loc[jobs["excluded_nodes"].isna(), "submit_line"].astype(str)
    assert not others.str.contains("exclude").any()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_each_lemon_of_two_thousand_nodes_expects_six_occasions_in_28_days(seed: int) -> None:
    demo = demo_cluster(DemoSpec.of(n_nodes=2000, days=56, seed=seed))
    happened, planted = occasions(demo), expected(demo, 56)
    assert min(float(lemon["expected_occasions"]) for lemon in demo.truth.lemon_nodes) >= 6
    anyway = happened.drop(planted.index).mean()[["drain", "exclusion"]] * len(planted)
    for kind in planted:
        total = planted[kind].sum() + anyway.get(kind, 0)
        found = happened.loc[planted.index, kind].sum()
        assert found == pytest.approx(total, abs=4 * np.sqrt(total)), kind
    assert 5.5 < demo.truth.rate_per_1000_node_days < 7
