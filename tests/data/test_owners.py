"""Records whose source names no cluster belong to the only one that knows their host or job."""

from __future__ import annotations

import itertools
import json
from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from app.actions import Options, ingest_files
from app.answers.explore import find
from app.answers.fleet import coverage, names
from app.answers.fleet.actions.rows import of_sources
from app.ask import of_store
from data.errors import DataError
from data.filters import Selection
from data.ingest.readers import known_readers
from data.publish import schema, writer
from data.publish.owners import Owners
from data.store import Store
from data.tables import records, tables

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

HEAD = "JobID|Cluster|User|State|Submit|Start|End|NNodes|AllocTRES|NodeList\n"
TIMES = "2026-01-05T09:00:00|2026-01-05T10:00:00|2026-01-05T12:00:00"
JOB = f"7|hal|ann|FAILED|{TIMES}|2|gres/gpu=16|gpu[1-2]\n"
ELSEWHERE = f"7|rsc|bob|FAILED|{TIMES}|1|gres/gpu=8|gpu2\n"
XID = "kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n"
INVENTORY = "".join(
    f"NodeName={name} CPUTot=16 Gres=gpu:8 State=IDLE\n\n" for name in ("gpu1", "gpu2", "gpu9")
)
FILES = {
    "sacct": HEAD + JOB,
    "kernel-log": f"2026-01-05T11:59:30+00:00 GPU1.mgmt {XID}"
    f"2026-01-05T11:00:00+00:00 gpu9 {XID}2026-01-05T11:00:00+00:00 login1 {XID}",
    "scontrol-nodes": INVENTORY,
    "sacctmgr-events": "NodeName|TimeStart|TimeEnd|State|Reason|User\n"
    "gpu2|2026-01-05T12:00:00|2026-01-05T13:00:00|DOWN|dead|root\n",
    "prometheus-json": json.dumps(
        {"status": "success", "data": {"resultType": "matrix", "result": [
            {"metric": {"__name__": "DCGM_FI_DEV_XID_ERRORS", "Hostname": "gpu2", "gpu": "1"},
             "values": [[1767610800, "0"], [1767614100, "79"]]}]}}
    ),
    "training-metrics": "step,time,loss,job_id\n1,2026-01-05T11:00:00Z,2.5,7\n",
}  # fmt: skip
NOT_COMPARED = {"ingests", "rejected_rows", "store_meta", "stage_runs", "collected_windows"}
IN_UTC = Options(timezone="UTC")


def read(root: Path, source: str, text: str, options: Options = IN_UTC) -> list[str]:
    """Ingests a text; the notices."""
    path = root.parent / f"{root.name}-{source}.txt"
    path.write_text(text, encoding="utf-8")
    at = {"at": datetime.fromisoformat("2026-01-05T00:00:00+00:00")}
    stated = {**vars(options), **(at if source == "scontrol-nodes" else {})}
    (result,), _ = ingest_files(root, source, [str(path)], Options(**stated))
    return list(result.notices)


def rows(root: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(Store.open(root)) as store:
        return store.rows(sql)


def content(root: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table that follows from the records.

    Which incidents were told before, and so under which id one is told, is history.
    """
    of = {
        "incidents": "(SELECT * EXCLUDE (incident_id) FROM incidents WHERE NOT retired)",
        "incident_members": "(SELECT * EXCLUDE (incident_id) FROM incident_members)",
    }
    with closing(Store.open(root)) as store:
        return {
            name: store.rows(f"SELECT * FROM {of.get(name, name)} ORDER BY ALL")
            for name in sorted(tables().keys() - NOT_COMPARED)
        }


def in_order(root: Path, sources: Iterable[str]) -> dict[str, list[tuple[Any, ...]]]:
    for source in sources:
        read(root, source, FILES[source])
    return content(root)


@pytest.fixture(scope="module")
def jobs_first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of all files, the jobs first; only to be read."""
    root = tmp_path_factory.mktemp("first") / "store"
    in_order(root, FILES)
    return root


@pytest.mark.slow
def test_records_are_those_of_the_cluster_that_knows_their_host_or_job(jobs_first: Path) -> None:
    found = rows(
        jobs_first,
        """SELECT node, cluster, cluster_from, source FROM health_events
           ORDER BY node, source""",
    )
    assert found == [
        ("gpu1", "hal", "host", "kernel"),
        ("gpu2", "hal", "host", "dcgm"),
        ("gpu9", "hal", "host", "kernel"),  # which only the inventory names
        ("login1", None, "none", "kernel"),
    ]
    assert rows(jobs_first, "SELECT DISTINCT cluster FROM nodes") == [("hal",)]
    assert rows(jobs_first, "SELECT cluster FROM clusters") == [("hal",)]
    assert rows(jobs_first, "SELECT count(*) FROM nodes WHERE role = 'compute'") == [(3,)]
    assert rows(jobs_first, "SELECT cause FROM failures") == [("gpu_unavailable",)]
    assert rows(jobs_first, "SELECT cluster, attempt_key IS NULL FROM training_metrics") == [
        ("hal", False)
    ]


ORDERS = list(itertools.permutations(FILES))


@pytest.mark.slow
@pytest.mark.parametrize(
    "order",
    [order for place, order in enumerate(ORDERS) if place % 24 == 23],
    ids=lambda order: "-".join(source[:4] for source in order),
)
def test_the_order_of_files_does_not_matter(
    tmp_path: Path, jobs_first: Path, order: tuple[str, ...]
) -> None:
    assert in_order(tmp_path / "store", order) == content(jobs_first)


def test_without_any_named_cluster_records_wait_in_one(tmp_path: Path) -> None:
    root = tmp_path / "store"
    told = read(root, "kernel-log", FILES["kernel-log"])
    assert not any("no cluster of the store" in text for text in told)
    assert rows(root, "SELECT cluster FROM clusters") == [("cluster",)]
    with closing(Store.open(root)) as store:
        (found,) = names.without_cluster(store)
        answer = of_store(store)(coverage.contents)
    assert (found.n_records, found.n_names, found.cluster) == (3, 3, "cluster")
    assert answer.homeless == (found,)


def test_a_host_that_no_cluster_knows_is_told_and_keeps_none(tmp_path: Path) -> None:
    root = tmp_path / "store"
    read(root, "sacct", HEAD + JOB)
    (told,) = read(root, "kernel-log", f"2026-01-05T11:00:00+00:00 login1 {XID}")
    assert told.startswith("hosts that no cluster of the store knows")
    assert "login1" in told
    assert rows(root, "SELECT cluster, source FROM coverage") == [("hal", "jobs")]
    with closing(Store.open(root)) as store:
        ask = of_store(store)
        (found,) = find.answer(ask, "login1").record["nodes"]
        told = [one.what for one in of_sources(ask, Selection())]
    assert (found["node"], found["cluster"]) == ("login1", None)
    assert "Collect kernel logs of a known cluster" in told


def test_what_several_clusters_know_is_refused_with_their_names(tmp_path: Path) -> None:
    root = tmp_path / "store"
    read(root, "sacct", HEAD + JOB + ELSEWHERE)
    with pytest.raises(DataError, match=r"host gpu2, of .* known in hal and in rsc: pass --clust"):
        read(root, "kernel-log", f"2026-01-05T11:00:00+00:00 gpu2 {XID}")
    assert rows(root, "SELECT count(*) FROM health_events") == [(0,)]
    with pytest.raises(DataError, match="job 7, of which it names no cluster, is known in hal"):
        read(root, "training-metrics", FILES["training-metrics"])
    read(root, "kernel-log", f"2026-01-05T11:00:00+00:00 gpu2 {XID}", Options(cluster="rsc"))
    assert rows(root, "SELECT cluster, cluster_from FROM health_events") == [("rsc", None)]


@pytest.mark.slow
def test_a_cluster_that_comes_later_and_knows_the_host_too_leaves_it_undecided(
    tmp_path: Path,
) -> None:
    root = tmp_path / "store"
    read(root, "sacct", HEAD + JOB)
    read(root, "kernel-log", f"2026-01-05T11:00:00+00:00 gpu2 {XID}")
    read(root, "sacct", HEAD + ELSEWHERE)
    assert rows(root, "SELECT cluster, cluster_from FROM health_events") == [(None, "several")]


@pytest.mark.slow
def test_a_domain_tells_two_clusters_apart(tmp_path: Path) -> None:
    root = tmp_path / "store"
    read(root, "sacct", (HEAD + JOB + ELSEWHERE).replace("|gpu2\n", "|gpu2.rsc.org\n"))
    read(root, "kernel-log", f"2026-01-05T11:00:00+00:00 gpu2.rsc.org {XID}")
    assert rows(root, "SELECT cluster FROM health_events") == [("rsc",)]


def test_the_same_records_with_and_without_the_name_count_once(tmp_path: Path) -> None:
    root = tmp_path / "store"
    read(root, "sacct", HEAD + JOB)
    text = f"2026-01-05T11:00:00+00:00 gpu2 {XID}" * 2
    for options in (Options(cluster="hal"), IN_UTC):
        read(root, "kernel-log", text, options)
        assert rows(root, "SELECT cluster, count(*) FROM health_events GROUP BY ALL") == [
            ("hal", 2)
        ]


def test_local_times_are_of_the_zone_of_the_cluster_that_knows_the_host(tmp_path: Path) -> None:
    root = tmp_path / "store"
    read(root, "sacct", HEAD + JOB, Options(timezone="Asia/Tokyo"))
    notices = read(root, "kernel-log", f"[Mon Jan  5 11:59:30 2026] {XID}", Options(node="gpu1"))
    assert rows(root, "SELECT strftime(observed_at, '%H:%M') FROM health_events") == [("02:59",)]
    assert any("local times of hal read in Asia/Tokyo" in text for text in notices)


@pytest.mark.slow
def test_an_only_cluster_of_site_toml_takes_hosts_that_nobody_knows(tmp_path: Path) -> None:
    root = tmp_path / "store"
    root.mkdir()
    (root / "site.toml").write_text("[cluster.hal]\n")
    read(root, "kernel-log", FILES["kernel-log"])
    assert rows(root, "SELECT DISTINCT cluster, cluster_from FROM health_events") == [
        ("hal", "site")
    ]
    read(root, "sacct", HEAD + ELSEWHERE)  # a cluster that site.toml does not state
    assert rows(root, "SELECT node, cluster FROM health_events WHERE node = 'login1'") == [
        ("login1", None)
    ]


@pytest.mark.slow
def test_a_store_of_before_is_healed(tmp_path: Path) -> None:
    """Records that an earlier version kept in a cluster of their own join that of their host."""
    root = tmp_path / "store"
    read(root, "kernel-log", FILES["kernel-log"], Options(cluster="cluster"))
    read(root, "sacct", HEAD + JOB)
    assert rows(root, "SELECT DISTINCT cluster FROM health_events") == [("cluster",)]
    with writer(root) as building:
        for name, table in records().items():
            if table.placed_by:
                building.connection.execute(f"ALTER TABLE {name} DROP COLUMN cluster_from")
        schema.update(building.connection, from_version=10)
        building.connection.execute("DELETE FROM stage_runs")
        building.changed |= {"health_events"}
        building.publish()
    assert rows(root, "SELECT node, cluster FROM health_events ORDER BY node") == [
        ("gpu1", "hal"), ("gpu9", None), ("login1", None),
    ]  # fmt: skip
    assert rows(root, "SELECT cause FROM failures") == [("gpu_unavailable",)]


def test_readers_that_go_by_hosts_bring_only_tables_that_are_placed() -> None:
    """What the tests of each reader read shows which tables it brings."""
    by_host = {name for name, reader in known_readers().items() if reader.cluster_by_host}
    of_jobs = {"sacct", "sacct-json", "jobcomp", "pbs", "lsf", "sge", "job-table", "philly"}
    of_jobs |= {"reduced-jobs"}
    of_pods = {"k8s-pods", "k8s-workloads", "k8s-nodes"}
    apart = {"failure-log", "straggler-trace"}
    assert known_readers().keys() - by_host == of_jobs | of_pods | apart


@pytest.mark.slow
def test_files_of_one_ingest_ask_once_whose_their_hosts_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "store"
    read(root, "sacct", HEAD + JOB)
    asked = list[object]()
    init = Owners.__post_init__
    monkeypatch.setattr(Owners, "__post_init__", lambda own: asked.append(init(own)))
    paths = [tmp_path / f"kernel-{n}.log" for n in (1, 2, 3)]
    for n, path in enumerate(paths):
        path.write_text(f"2026-01-05T11:0{n}:00+00:00 gpu1 {XID}")
    ingest_files(root, "kernel-log", [str(path) for path in paths], IN_UTC)
    assert len(asked) == 2  # once as they are read, once at the publish
    assert rows(root, "SELECT cluster, count(*) FROM health_events GROUP BY ALL") == [("hal", 3)]


def test_a_list_without_a_cluster_tells_whose_the_logs_of_its_hosts_are(tmp_path: Path) -> None:
    """A node that no job used is known by an inventory alone; its local times are the cluster's."""
    root = tmp_path / "store"
    read(root, "sacct", HEAD + JOB, Options(timezone="Asia/Tokyo"))
    read(root, "scontrol-nodes", INVENTORY)
    told = read(root, "kernel-log", f"[Mon Jan  5 11:59:30 2026] {XID[8:]}", Options(node="gpu9"))
    assert not any("no cluster of the store" in text for text in told)
    assert rows(root, "SELECT cluster, strftime(observed_at, '%H:%M') FROM health_events") == [
        ("hal", "02:59")
    ]


def test_a_record_that_names_no_host_has_no_cluster(tmp_path: Path) -> None:
    root = tmp_path / "store"
    read(root, "sacct", HEAD + JOB)
    read(root, "tickets", "ticket_id,opened_at,text\n1,2026-01-05T11:00:00,broken\n")
    assert rows(root, "SELECT cluster, cluster_from, node FROM tickets") == [(None, "none", None)]
    with closing(Store.open(root)) as store:
        (found,) = names.without_cluster(store)
    assert (found.n_records, found.n_names, found.names) == (1, 0, ())
