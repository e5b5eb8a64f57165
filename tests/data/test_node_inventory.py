"""Nodes that inventories list, and what the ledger makes of them: clusters that no demo has."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from app.answers.efficiency import ledger
from app.answers.fleet import inventory, nodes
from app.ask import of_store
from app.words import terms
from data.filters import Selection
from data.ingest import Options, ingest
from data.publish import writer
from data.queries import exposure, failures, targets
from data.store import Store

if TYPE_CHECKING:
    from analytics.efficiency.goodput import GoodputLedger

BEGIN = datetime(2024, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
SACCT = "JobID|User|State|Submit|Start|End|NNodes|AllocTRES|NodeList"
EVENTS = "NodeName|TimeStart|TimeEnd|State|Reason|User"
Export = tuple[str, str, Any]


def stamp(hours: float) -> str:
    return f"{BEGIN + hours * HOUR:%Y-%m-%dT%H:%M:%S}"


def job(nodes: str, begin: float, end: float, gpus: int | None, n_nodes: int = 1) -> str:
    times = "|".join(stamp(hours) for hours in (begin, begin, end))
    tres = "cpu=1" if gpus is None else f"cpu=1,gres/gpu={gpus}"
    return f"ann|COMPLETED|{times}|{n_nodes}|{tres}|{nodes}"


def jobs(*lines: str) -> Export:
    """Accounting from 0 to 24 hours; an attempt of a CPU node begins and ends it."""
    edge = (job("c1", 0, 0.25, None), job("c1", 23, 24, None))
    rows = [f"{number}|{line}" for number, line in enumerate((*edge, *lines), 1)]
    return "sacct", "\n".join([SACCT, *rows]) + "\n", None


def listed(hours: float, *nodes: str) -> Export:
    """An inventory made then, of nodes as `name:gpus` or `name:gpus:state`."""
    lines = ["NODELIST|GRES|STATE"]
    for node in nodes:
        name, gpus, state = [*node.split(":"), "idle"][:3]
        lines.append(f"{name}|{f'gpu:a100:{gpus}' if gpus != '0' else '(null)'}|{state}")
    return "sinfo", "\n".join(lines) + "\n", BEGIN + hours * HOUR


def down(hours: float, since: float | None, state: str) -> Export:
    """An inventory of g1 and c1 made then: g1 in a state, since when its reason says."""
    told = "none|Unknown|Unknown" if since is None else f"fan|{stamp(since)}|mia"
    rows = f"g1|gpu:4|{state}|{told}\nc1|(null)|idle|none|Unknown|Unknown\n"
    return "sinfo", f"NODELIST|GRES|STATE|REASON|TIMESTAMP|USER\n{rows}", BEGIN + hours * HOUR


OFF = ("idle~", "idle#", "IDLE+CLOUD+POWERED_DOWN", "future")
MIXED = jobs(job("g1", 2, 5, 4), job("g1", 6, 7, 1), job("c2", 1, 9, None), job("c3", 2, 3, None))
CPUS = ("c1:0", "c2:0", "c3:0")
GROWN = (MIXED, listed(3, "g1:4", *CPUS), listed(12, "g1:4", "g2:8", *CPUS))
CASES: dict[str, tuple[Export, ...]] = {
    "mixed": (MIXED, listed(30, "g1:4", "g2:2", *CPUS)),
    "unlisted": (jobs(job("g1", 2, 5, 4), job("c2", 1, 9, None), job("g1", 3, 6, 2)),),
    "configured": (jobs(job("g1", 0, 24, 4)),),
    "configured_and_listed": (jobs(job("g1", 0, 24, 4)), listed(0, "g1:4", "c1:0")),
    "grown": GROWN,
    "grown_backwards": GROWN[::-1],
    "changed": (
        jobs(job("g1", 0, 1, 8)), listed(1, "g1:8", "c1:0"), listed(8, "g1:7", "c1:0"),
        listed(9, "g1:7", "c1:0"),
        ("sacctmgr-events", f"{EVENTS}\ng1|{stamp(6)}|{stamp(10)}|DRAIN|x|root\n", None),
    ),
    **{
        state: (jobs(job("g1", 0, 6, 4), job("g2", 8, 10, 4)), listed(0, "g1:4", f"g2:4:{state}"))
        for state in OFF
    },
    "up_again": (
        jobs(job("g1", 0, 6, 4)), listed(0, "g2:4:idle~", "g1:4", "c1:0"),
        listed(20, "g2:4", "g1:4", "c1:0"),
    ),
    "contradicted": (jobs(job("g1", 0, 6, 8)), listed(0, "g[1-2]:4", "c1:0")),
    "unlike_nodes": (jobs(job("c1,g1", 2, 4, 8, 2)), listed(0, "g1:8", "c1:0")),
    "spelt": (MIXED, listed(30, "G1.hpc.example:4", "C[1-3].hpc.example:0")),
    "went_and_came": (MIXED, listed(1, "g1:4", "old:8", *CPUS), listed(10, "g1:4", "new:8", *CPUS)),
    "lacking": (jobs(job("old", 12, 14, 8)), listed(1, "old:8", *CPUS), listed(10, *CPUS)),
    "partitions": (MIXED, listed(1, "g1:4", "g2:4"), listed(1.1, *CPUS)),
    "half": (jobs(job("g1", 0, 6, 4), job("g2", 4, 6, 4), job("g2", 8, 10, 2)), listed(5, "g1:8")),
    "names_alone": (jobs(job("g1", 0, 6, 4)), ("sinfo", "NODELIST|STATE\ng[1-9]|idle\n", BEGIN)),
    "shown_out": (
        jobs(job("g1", 0, 1, 4)),
        *(down(hours, since, state) for hours, since, state in
          ((4, 3, "drain"), (6, 3, "drain"), (9, None, "idle"), (12, 11, "down*"), (20, None, "down"))),
    ),
    "larger": (jobs(job("b1", 0, 24, 8)), listed(0, "g[1-3]:4", "b1:8", "c1:0")),
    "two_sizes": (
        jobs(job("g1", 0, 24, 4), job("b1", 0, 12, 8), job("b1,g1", 0, 1, 12, 2)),
        listed(0, "g1:4", "b[1-2]:8", "c1:0"),
    ),
    "cpu_only": (jobs(), listed(0, *CPUS)),
    "anothers": (jobs(job("g1", 0, 6, 4)), listed(0, "x[1-3]:8")),
    "without_jobs": (listed(0, "g[1-3]:8"),),
    "renamed": (MIXED, listed(1, "g1:4", *CPUS), listed(10, "gpu-one:4", *CPUS)),
}  # fmt: skip
"""Clusters of one store, by name."""
SITE = """
[cluster.configured]
gpus_per_node = 8
[cluster.configured_and_listed]
gpus_per_node = 8
[nodes]
g1 = ["gpu-one"]
"""


class Clusters(NamedTuple):
    """The store of all clusters."""

    store: Store

    def ledger(self, cluster: str) -> GoodputLedger:
        return ledger.measured(self.store, Selection(cluster))

    def hours(self, cluster: str) -> dict[str, float]:
        """GPU-hours that jobs held, those of the buckets of no job, and in all."""
        found = self.ledger(cluster)
        held = sum(each.gpu_seconds for each in found.buckets if each.kind.of_jobs)
        free = {each.bucket: each.gpu_seconds / 3600 for each in found.buckets
                if each.gpu_seconds and not each.kind.of_jobs}  # fmt: skip
        return {"held": held / 3600, **free, "all": found.total_gpu_seconds / 3600}

    def notes(self, cluster: str) -> str:
        return " ".join(inventory.notes(inventory.known(self.store, Selection(cluster))))


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Clusters:
    root = tmp_path_factory.mktemp("inventories")
    (root / "site.toml").write_text(SITE, encoding="utf-8")
    with writer(root) as building:
        for cluster, exports in CASES.items():
            for source, text, at in exports:
                path = root / "export"
                path.write_text(text, encoding="utf-8")
                options = Options(cluster=cluster, timezone="UTC", at=at)
                ingest(building, source, str(path), options)
        building.publish(ledger=True)
    return Clusters(Store.open(root))


@pytest.mark.slow
def test_gpu_hours_of_a_mixed_cluster_are_those_of_jobs_and_of_the_inventorys_idle(
    clusters: Clusters,
) -> None:
    assert clusters.hours("mixed") == {"held": 13.0, "idle": 6 * 24 - 13.0, "all": 6 * 24.0}
    assert "inventory of 2 Mar 2024 is taken to hold from the first record on for 2 nodes" in (
        clusters.notes("mixed")
    )


def test_without_an_inventory_a_node_has_the_gpus_that_jobs_show_and_others_none(
    clusters: Clusters,
) -> None:
    assert clusters.hours("unlisted") == {"held": 18.0, "idle": 6 * 4 - 18.0, "all": 24.0}
    told = clusters.notes("unlisted")
    assert "3 nodes are in no inventory" in told
    assert "2 on which none held any have none" in told
    assert "unknown, not idle" in told


def test_a_cluster_configured_in_site_toml_stays_as_configured(clusters: Clusters) -> None:
    assert clusters.hours("configured")["all"] == 2 * 8 * 24.0
    assert "each counts with the 8 GPUs that site.toml states" in clusters.notes("configured")
    assert clusters.hours("configured_and_listed") == {"held": 96.0, "all": 96.0}
    assert "1 listed node has 4 GPUs, where site.toml states 8" in (
        clusters.notes("configured_and_listed")
    )


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        ("mixed", "; time before the first inventory assumed"),
        ("unlisted", "; nodes in no inventory assumed"),
        ("up_again", ""),
    ],
)
def test_the_headline_of_idle_time_says_what_it_rests_on(
    clusters: Clusters, cluster: str, said: str
) -> None:
    shown = ledger.answer(of_store(clusters.store), Selection(cluster))
    (idle,) = (number for number in shown.numbers if number.term is terms.IDLE_HOURS)
    assert idle.basis.removeprefix(idle.basis.partition("; ")[0]) == said


def test_the_order_in_which_inventory_and_jobs_come_does_not_matter(clusters: Clusters) -> None:
    found = clusters.hours("grown")
    assert found == {"held": 13.0, "idle": 4 * 24 + 8 * 12 - 13.0, "all": 192.0}
    assert clusters.hours("grown_backwards") == found


def test_gpus_that_change_count_from_when_they_were_seen_to(clusters: Clusters) -> None:
    assert clusters.hours("changed") == {
        "held": 8.0, "idle": 8 * 5 + 7 * 14.0, "drained": 2 * 8 + 2 * 7.0, "all": 8 * 8 + 7 * 16.0,
    }  # fmt: skip
    spells = clusters.store.rows(
        "SELECT gpus, listed_at FROM nodes WHERE (cluster, node) = ('changed', 'g1') ORDER BY ALL"
    )
    assert spells == [(7, BEGIN + 8 * HOUR), (8, BEGIN + HOUR)]


@pytest.mark.parametrize("state", OFF)
def test_a_node_that_is_powered_down_has_only_what_jobs_hold(
    clusters: Clusters, state: str
) -> None:
    assert clusters.hours(state) == {"held": 32.0, "idle": 18 * 4.0, "all": 18 * 4 + 32.0}
    assert "1 node with GPUs is powered down" in clusters.notes(state)


def test_a_node_up_again_counts_from_when_it_was_seen_up(clusters: Clusters) -> None:
    assert clusters.hours("up_again")["all"] == 24 * 4 + 4 * 4.0


def test_a_job_with_more_gpus_than_are_listed_is_told_and_takes_no_others_idle_time(
    clusters: Clusters,
) -> None:
    assert clusters.hours("contradicted") == {
        "held": 48.0, "idle": 2 * 24 * 4 - 24.0, "all": 2 * 24 * 4 + 24.0,
    }  # fmt: skip
    assert "g1 (8 held, 4 listed)" in clusters.notes("contradicted")


def test_gpus_of_a_job_on_unlike_nodes_lie_where_the_inventory_has_them(clusters: Clusters) -> None:
    assert clusters.hours("unlike_nodes") == {"held": 16.0, "idle": 8 * 22.0, "all": 8 * 24.0}
    assert "held more" not in clusters.notes("unlike_nodes")


def test_names_in_capitals_and_with_a_domain_are_the_nodes_of_jobs(clusters: Clusters) -> None:
    assert clusters.hours("spelt")["all"] == 4 * 24.0
    names = clusters.store.rows("SELECT node FROM nodes WHERE cluster = 'spelt' ORDER BY ALL")
    assert names == [("c1",), ("c2",), ("c3",), ("g1",)]


def test_a_node_that_went_and_one_that_came_count_while_they_were_there(clusters: Clusters) -> None:
    assert clusters.hours("went_and_came")["all"] == 24 * 4 + 10 * 8 + 14 * 8.0
    assert "1 node is in an earlier inventory and not in the last" in (
        clusters.notes("went_and_came")
    )


def test_a_node_that_an_inventory_lacks_is_there_as_long_as_jobs_use_it(clusters: Clusters) -> None:
    assert clusters.hours("lacking") == {"held": 16.0, "idle": 8 * 12.0, "all": 8 * 14.0}


def test_inventories_of_one_partition_each_take_no_nodes_away(clusters: Clusters) -> None:
    assert clusters.hours("partitions")["all"] == 24 * 8.0


def test_half_of_the_nodes_listed_leaves_the_others_to_what_jobs_show(clusters: Clusters) -> None:
    assert clusters.hours("half") == {
        "held": 36.0, "idle": 8 * 24 + 4 * 6 - 36.0, "all": 8 * 24 + 4 * 6.0,
    }  # fmt: skip
    assert "2 nodes more are in no inventory" in clusters.notes("half")


def test_an_inventory_that_says_nothing_of_gpus_leaves_what_jobs_show(clusters: Clusters) -> None:
    assert clusters.hours("names_alone") == {"held": 24.0, "idle": 18 * 4.0, "all": 24 * 4.0}
    assert "do not say how many GPUs 9 nodes have" in clusters.notes("names_alone")


def test_the_page_of_a_node_shows_its_gpus_over_time_and_what_was_seen_last(
    clusters: Clusters,
) -> None:
    facts = failures.node_facts(clusters.store, "changed", "g1")
    gpus = facts[facts["key"].eq("GPUs")]
    assert gpus["value"].tolist() == ["7", "8"]
    seen = dict(zip(facts["key"], facts["value"], strict=True))
    assert (seen["GPU model"], seen["state then"]) == ("a100", "IDLE")
    alone = failures.node_facts(clusters.store, "unlisted", "g1")
    assert alone.loc[alone["key"].eq("GPUs, at least"), "value"].tolist() == ["4"]


def test_a_state_seen_at_a_time_counts_as_long_as_its_reason_says_and_no_longer(
    clusters: Clusters,
) -> None:
    found = clusters.hours("shown_out")
    assert found == {
        "held": 4.0, "drained": 3 * 4.0, "down_unplanned": 1 * 4.0, "idle": 19 * 4.0, "all": 96.0,
    }  # fmt: skip
    assert "1 node counts as out of service from when the reason was given" in (
        clusters.notes("shown_out")
    )


def test_overview_counts_nodes_that_are_there_and_those_the_last_inventory_shows_down(
    clusters: Clusters,
) -> None:
    shown = nodes.nodes(clusters.store, Selection("shown_out"))
    assert (shown.n_nodes, shown.n_out_of_service) == (2, 1)
    assert nodes.nodes(clusters.store, Selection("went_and_came")).n_nodes == 5
    before = Selection("went_and_came", to_at=BEGIN + 5 * HOUR)
    assert nodes.nodes(clusters.store, before).n_nodes == 6
    assert nodes.nodes(clusters.store, Selection("unlisted")).n_out_of_service is None


def test_a_job_on_one_of_the_larger_nodes_is_no_job_on_several(clusters: Clusters) -> None:
    rows = clusters.store.rows(
        "SELECT gpus_per_node FROM clusters WHERE cluster = 'larger' UNION ALL "
        "SELECT node_gpus FROM jobs WHERE cluster = 'larger' AND n_gpus > 0"
    )
    assert rows == [(4,), (8,)]
    assert not clusters.store.rows("FROM job_runs WHERE cluster = 'larger'")


def test_who_gave_a_reason_is_a_name_that_redacted_reports_replace(clusters: Clusters) -> None:
    assert "mia" in targets.people(clusters.store).users


def test_exposure_counts_each_node_by_its_own_gpus(clusters: Clusters) -> None:
    chosen = Selection("two_sizes")
    ran = exposure.runs(clusters.store, chosen)
    assert ran["exposure_node_days"].sum() == pytest.approx(1 + 0.5 + 2 / 24)
    by_node = exposure.node_exposure(clusters.store, chosen)
    days = dict(zip(by_node["node"], by_node["exposure_node_days"], strict=True))
    assert days == pytest.approx({"g1": 1 + 6 / 4 / 24, "b1": 0.5 + 6 / 8 / 24})
    assert clusters.store.rows(
        "SELECT gpus_per_node, gpus_per_node_source FROM clusters WHERE cluster = 'two_sizes'"
    ) == [(8, "inventory")]


def test_rates_of_a_configured_cluster_count_as_configured(clusters: Clusters) -> None:
    ran = exposure.runs(clusters.store, Selection("configured_and_listed"))
    assert ran["exposure_node_days"].sum() == pytest.approx(4 / 8)


def test_a_cluster_without_gpus_has_no_gpu_hours(clusters: Clusters) -> None:
    assert clusters.hours("cpu_only") == {"held": 0.0, "all": 0.0}
    assert clusters.notes("cpu_only") == ""


def test_the_inventory_of_another_cluster_is_told(clusters: Clusters) -> None:
    assert "is it another cluster's?" in clusters.notes("anothers")


def test_an_inventory_of_a_cluster_without_jobs_counts_nothing_and_is_told(
    clusters: Clusters,
) -> None:
    assert clusters.hours("without_jobs")["all"] == 0
    assert "No job of without_jobs is known, whose inventory lists 3 nodes" in (
        clusters.notes("without_jobs")
    )


def test_two_names_of_site_toml_are_one_node_of_two_inventories(clusters: Clusters) -> None:
    assert clusters.hours("renamed")["all"] == 4 * 24.0
    assert not clusters.store.rows("FROM nodes WHERE node = 'gpu-one'")
