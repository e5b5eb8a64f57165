"""A node under several names is one node, and a host that only logs name is none."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from app.actions import Options, ingest_files
from app.answers.failures import node as node_answers
from app.answers.fleet import names
from app.ask import of_store
from data.filters import Selection
from data.ingest import ingest
from data.publish import writer
from data.queries import fleet, targets
from data.store import Store
from data.tables import records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

Row = dict[str, Any]
BEGIN = datetime(2024, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
SACCT = "JobID|Cluster|User|State|Submit|Start|End|NNodes|AllocTRES|NodeList|FailedNode"
EVENTS = "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User"


def as_is(name: str) -> str:
    return name


def fqdn(name: str) -> str:
    return f"{name}.hpc.example"


def upper(name: str) -> str:
    return name.upper()


def stamp(hours: float) -> str:
    return f"{BEGIN + hours * HOUR:%Y-%m-%dT%H:%M:%S}"


def read(root: Path, source: str, text: str) -> tuple[str, ...]:
    """Ingests a text; its notices but for columns that it lacks."""
    path = root.parent / f"{root.name}-{source}.txt"
    path.write_text(text, encoding="utf-8")
    (result,), _ = ingest_files(root, source, [str(path)], Options(cluster="a", timezone="UTC"))
    return tuple(text for text in result.notices if not text.startswith("no column"))


def accounting(spelt: Callable[[str], str], first: int, last: int) -> str:
    """Jobs of 8 GPUs, 3 hours each, by turns on four nodes; every fourth fails or loses its node."""
    lines = [SACCT]
    for n in range(first, last):
        host = spelt(f"gpu{n % 4 + 1}")
        state = ("COMPLETED", "FAILED", "COMPLETED", "NODE_FAIL")[n % 4]
        lost = host if state == "NODE_FAIL" else ""
        times = "|".join(stamp(hours) for hours in (n - 0.5, n, n + 3))
        lines.append(f"{n}|a|ann|{state}|{times}|1|gres/gpu=8|{host}|{lost}")
    return "\n".join(lines) + "\n"


def cluster_of(root: Path, spellings: dict[str, Callable[[str], str]]) -> Path:
    """A store of files in these spellings: accounting in two, events, kernel lines, checks."""
    own = {
        name: spellings.get(name, as_is) for name in ("sacct", "later", "events", "kernel", "gcm")
    }
    texts = [
        ("sacct", accounting(own["sacct"], 0, 24)),
        ("sacct", accounting(own["later"], 20, 40)),
    ]
    outages = [f"a|{own['events'](f'gpu{n}')}|{stamp(10 * n)}|{stamp(10 * n + 4)}|DOWN|xid|root"
               for n in (1, 2, 3)]  # fmt: skip
    texts.append(("sacctmgr-events", "\n".join([EVENTS, *outages]) + "\n"))
    lines = [f"{stamp(n + 2.99)}+00:00 {own['kernel'](f'gpu{n % 4 + 1}')} kernel: NVRM: Xid "
             "(PCI:0000:9b:00): 79, GPU has fallen off the bus." for n in (1, 5, 9)]  # fmt: skip
    texts.append(("kernel-log", "\n".join(lines) + "\n"))
    checks = [{"node": own["gcm"](f"gpu{n % 4 + 1}"), "cluster": "a", "health_check": "check-ib",
               "type": "prolog", "result": 2, "_msg": "port down", "job_id": None,
               "start_time": (BEGIN + (n + 2.9) * HOUR).timestamp(),
               "end_time": (BEGIN + (n + 2.9) * HOUR).timestamp()} for n in (1, 13)]  # fmt: skip
    texts.append(("gcm-health", "\n".join(map(json.dumps, checks)) + "\n"))
    with writer(root) as building:
        for n, (source, text) in enumerate(texts):
            path = root.parent / f"{n}.txt"
            path.write_text(text, encoding="utf-8")
            ingest(building, source, str(path), Options(cluster="a", timezone="UTC"))
        building.publish(ledger=True)
    return root


def numbers(root: Path) -> dict[str, Any]:
    """What must not depend on spellings."""
    with closing(Store.open(root)) as store:
        return {
            "ledger": store.rows("SELECT day, bucket, cause, sum(gpu_seconds) FROM gpu_time "
                                 "GROUP BY ALL ORDER BY ALL"),
            "nodes": fleet.node_count(store, Selection()),
            "verdicts": store.rows("SELECT attempt_key, cause, domain, confidence, lower(split_part("
                                   "node, '.', 1)) FROM failures ORDER BY ALL"),
            "incidents": store.rows("SELECT count(*), sum(n_jobs) FROM incidents"),
            "held": store.rows("SELECT count(DISTINCT node), count(*) FROM job_nodes"),
            "out": store.rows("SELECT count(DISTINCT node), count(*) FROM node_events"),
        }  # fmt: skip


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The numbers of the files in one spelling."""
    return numbers(cluster_of(tmp_path_factory.mktemp("plain") / "store", {}))


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of the same files in mixed spellings; only to be read."""
    spellings = {"later": fqdn, "events": upper, "kernel": fqdn, "gcm": lambda n: fqdn(n).upper()}
    return cluster_of(tmp_path_factory.mktemp("mixed") / "store", spellings)


@pytest.mark.slow
def test_files_in_mixed_spellings_give_the_numbers_of_one_spelling(
    plain: dict[str, Any], mixed: Path
) -> None:
    assert numbers(mixed) == plain
    assert plain["nodes"] == 4
    assert "hardware" in {domain for _, _, domain, *_ in plain["verdicts"]}


def test_what_was_merged_is_listed_with_its_reason(mixed: Path) -> None:
    with closing(Store.open(mixed)) as store:
        shown = names.names(store, Selection())
    rows = {row.written: (row.node, row.rule) for row in shown.named.itertuples()}
    assert rows["gpu1.hpc.example"] == ("gpu1", "domain")
    assert rows["GPU1"] == ("gpu1", "case")
    (told,) = names.notes(shown)
    assert "count for it: GPU1 is gpu1" in told


@pytest.mark.parametrize("name", ["gpu2", "GPU2", "gpu2.hpc.example", "Gpu2.HPC.example"])
def test_the_page_of_a_node_opens_under_any_of_its_names(mixed: Path, name: str) -> None:
    with closing(Store.open(mixed)) as store:
        one = node_answers.node(store, name, Selection())
        answer = node_answers.answer(of_store(store), name, Selection())
    assert (one.node, len(one.attempts), len(one.outages)) == ("gpu2", 10, 1)
    assert answer.sentence.startswith("gpu2 was out of service 1 time")


def test_what_is_said_of_a_node_under_another_name_is_said_of_the_node(mixed: Path) -> None:
    with closing(Store.open(mixed)) as store:
        assert targets.known(store, "node", "a/GPU2") == "a/gpu2"
        assert targets.known(store, "node", "a/gpu2") == "a/gpu2"
        assert targets.known(store, "node", "a/gpu22") is None


# Small tables through the merge.


def job(number: int, node_list: str, **more: Any) -> Row:
    begin = BEGIN + number * HOUR
    return {"cluster": "a", "attempt_key": f"k{number}", "job_id": str(number), "user": "ann",
            "state": "COMPLETED", "submit_at": begin, "start_at": begin, "end_at": begin + HOUR,
            "node_list": node_list, "n_nodes": 1, "n_gpus": 8} | more  # fmt: skip


def event(number: int, node: str) -> Row:
    return {"cluster": "a", "event_id": f"e{number}", "node": node, "source": "kernel", "xid": 79,
            "observed_at": BEGIN + number * HOUR, "check_name": "xid"}  # fmt: skip


def outage(number: int, node: str, hours: float | None) -> Row:
    begin = BEGIN + number * HOUR
    end = None if hours is None else begin + hours * HOUR
    return {"cluster": "a", "node": node, "start_at": begin, "end_at": end, "state": "DOWN"}


def inventory(node: str, **more: Any) -> Row:
    return {"cluster": "a", "node": node, "first_seen_at": BEGIN, "gpus": 8, "rack": "r1",
            "source": "inventory"} | more  # fmt: skip


def published(root: Path, *parts: tuple[str, list[Row]]) -> Store:
    """The store after one publish for each part."""
    for table, rows in parts:
        frame = pd.DataFrame(rows, dtype="object")
        for name in frame.columns:
            if records()[table].columns[name].type == "TIMESTAMPTZ":
                frame[name] = pd.to_datetime(frame[name], utc=True)
        with writer(root) as building:
            building.merge({table: frame} if rows else {})
            building.publish()
    return Store.open(root)


def content(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """All rows that count, sorted; closes the store."""
    with closing(store):
        return {
            name: store.rows(f"SELECT * FROM {name} ORDER BY ALL")
            for name in ("jobs", "job_nodes", "nodes", "node_events", "health_events", "node_names")
        }


@pytest.mark.slow
def test_the_order_of_sources_does_not_matter(tmp_path: Path) -> None:
    parts = [
        ("health_events", [event(1, "N1.a"), event(2, "login1")]),
        ("jobs", [job(1, "n1"), job(2, "n1.a", attempt_key="other")]),
        ("node_events", [outage(3, "N1", 2.0), outage(3, "n1.a", 5.0), outage(3, "n1", None)]),
        ("nodes", [inventory("n1.a")]),
    ]  # fmt: skip
    one = content(published(tmp_path / "one", *parts))
    assert content(published(tmp_path / "other", *reversed(parts))) == one
    counted = [row for row in one["node_events"] if row[1] is not None]
    assert [row[1:4] for row in counted] == [("n1", BEGIN + 3 * HOUR, BEGIN + 8 * HOUR)]
    assert [row[1] for row in one["nodes"]] == ["login1", "n1"]


def test_the_same_outage_again_in_another_spelling_changes_nothing(tmp_path: Path) -> None:
    first = ("node_events", [outage(1, "n1", 2.0)])
    other = ("node_events", [outage(1, "N1", 1.0)])
    once = content(published(tmp_path / "one", first, other))
    assert content(published(tmp_path / "two", other, first, other)) == once
    assert sorted(row[1] or "" for row in once["node_events"]) == ["", "n1"]


def test_two_hosts_of_one_short_name_in_two_domains_stay_two(tmp_path: Path) -> None:
    store = published(tmp_path, ("jobs", [job(1, "n1.a"), job(2, "n1.b")]),
                      ("health_events", [event(1, "N1.A"), event(2, "n1")]))  # fmt: skip
    with closing(store):
        assert fleet.node_count(store, Selection()) == 2
        assert store.rows("SELECT node FROM health_events ORDER BY event_id") == [
            ("n1.a",),
            ("n1",),
        ]
        assert list(fleet.hosts_in_logs_alone(store, Selection())["node"]) == ["n1"]


@pytest.mark.slow
def test_an_alias_counts_at_the_next_publish_and_can_be_taken_back(tmp_path: Path) -> None:
    parts = (("jobs", [job(1, "gpu1", state="NODE_FAIL", failed_node="mgmt-1")]),
             ("health_events", [event(2, "MGMT-1.bmc")]))  # fmt: skip
    before = content(published(tmp_path, *parts))
    (tmp_path / "site.toml").write_text('[nodes]\ngpu1 = ["mgmt-1"]\n', encoding="utf-8")
    with closing(published(tmp_path, ("health_events", []))) as store:
        assert store.rows("SELECT node, node_written FROM health_events") == [
            ("gpu1", "MGMT-1.bmc")
        ]
        assert store.rows("SELECT node, cause <> 'unknown' FROM failures") == [("gpu1", True)]
        assert fleet.node_count(store, Selection()) == 1
        assert fleet.nodes_called(store, "mgmt-1") == [("a", "gpu1")]
    (tmp_path / "site.toml").unlink()
    assert content(published(tmp_path, ("health_events", []))) == before


def test_hosts_that_only_logs_name_are_no_compute_nodes(tmp_path: Path) -> None:
    hosts = [event(n, name) for n, name in enumerate(("login1", "bmc7", "gpu1"))]
    with writer(tmp_path) as building:
        building.merge({"jobs": pd.DataFrame([job(1, "gpu1", n_gpus=8)]),
                        "health_events": pd.DataFrame(hosts)})  # fmt: skip
        building.publish(ledger=True)
    with closing(Store.open(tmp_path)) as store:
        assert fleet.node_count(store, Selection()) == 1
        assert store.rows("SELECT node, role FROM nodes ORDER BY node") == [
            ("bmc7", "unknown"), ("gpu1", "compute"), ("login1", "unknown")]  # fmt: skip
        # one node of 8 GPUs for the hour between first and last record, and no more
        assert store.rows("SELECT sum(gpu_seconds) FROM gpu_time") == [(8 * 3600,)]
        (told,) = names.notes(names.names(store, Selection()))
    assert "2 hosts are named by logs alone and count as no compute node" in told


def test_an_ingest_tells_the_names_that_it_brought_and_no_other(tmp_path: Path) -> None:
    root = tmp_path / "store"
    assert read(root, "sacct", accounting(as_is, 0, 4)) == ()
    line = f"{stamp(1)}+00:00 {{}} kernel: NVRM: Xid (PCI:0000:9b:00): 79, gone"
    told = read(root, "kernel-log", "\n".join([line.format("GPU1"), line.format("login1")]) + "\n")
    assert [text.split(":")[0] for text in told] == [
        "1 name is another name of a node and counts for it",
        "1 host is named by logs alone and counts as no compute node (no GPU-hours, no idle time)",
    ]
    assert read(root, "kernel-log", line.format("GPU1") + "\n") == ()


@pytest.mark.parametrize("rows", [[0, 1], [1, 0]], ids=["inventory last", "inventory first"])
def test_an_inventory_stands_beside_records_of_the_same_moment(
    tmp_path: Path, rows: Iterable[int]
) -> None:
    parts = [("jobs", [job(0, "n1")]), ("nodes", [inventory("n1", last_seen_at=None)])]
    with closing(published(tmp_path, *(parts[n] for n in rows))) as store:
        assert store.rows("SELECT node, rack, gpus, source FROM nodes") == [
            ("n1", "r1", 8, "inventory")
        ]


def test_names_of_a_store_of_logs_alone_are_told_and_count_nothing(tmp_path: Path) -> None:
    with closing(
        published(tmp_path, ("health_events", [event(1, "gpu1"), event(2, "GPU1.x")]))
    ) as s:
        assert fleet.node_count(s, Selection()) == 0
        assert s.rows("SELECT DISTINCT node FROM health_events") == [("gpu1",)]
