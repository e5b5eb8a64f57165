"""Stages of the derivation: what they declare is all they use, and only what is due runs."""

from __future__ import annotations

import random
import shutil
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import pytest

from data import stages
from data.publish import writer
from data.said import Said, read_said
from data.site import Site, load_site
from data.state import State
from data.store import Store
from data.tables import tables

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

END = datetime(2024, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
Row = dict[str, Any]
EVERY_STAGE = {stage.name for stage in stages.stages()}
ON_DEMAND = {"ledger", "runs"}
APART = {"ingests", "rejected_rows", "store_meta", "stage_runs"}


def job(number: int, state: str = "COMPLETED", **more: Any) -> Row:
    begin = END + number * 3 * HOUR
    row = {"cluster": "a", "attempt_key": f"k{number}", "job_id": str(number), "state": state,
           "submit_at": begin, "start_at": begin, "end_at": begin + HOUR, "node_list": "n[1-2]",
           "n_nodes": 2, "n_gpus": 16, "user": "ann", "name": f"job {number}"}  # fmt: skip
    return row | more


def event(number: int, **more: Any) -> Row:
    row = {"cluster": "a", "event_id": f"e{number}", "node": "n1", "source": "kernel",
           "observed_at": END + number * 3 * HOUR + HOUR, "check_name": "xid", "severity": None,
           "xid": 79, "message": "fell off the bus"}  # fmt: skip
    return row | more


def trained(number: int) -> Row:
    """A step that an attempt logged."""
    return {"cluster": "a", "run_id": str(number), "job_id": str(number), "step": 1, "rank": 0,
            "logged_at": END + number * 3 * HOUR + 0.5 * HOUR, "loss": 1.0}  # fmt: skip


def line(number: int, text: str) -> Row:
    return {"cluster": "a", "job_id": str(number), "file": f"slurm-{number}.out", "line_no": 1,
            "logged_at": END + number * 3 * HOUR + 0.9 * HOUR, "text": text}  # fmt: skip


def records() -> dict[str, list[Row]]:
    """A little of everything that stages read."""
    return {
        "jobs": [job(1), job(2, "FAILED"), job(3, "NODE_FAIL"), job(4, "CANCELLED", preempted_by="3"),
                 job(5, "NODE_FAIL", job_id="3")],
        "health_events": [event(2), event(3), event(6, xid=None, check_name="check-ib",
                                                    severity="warning")],
        "node_events": [{"cluster": "a", "node": "n1", "start_at": END + 10 * HOUR,
                         "end_at": END + 11 * HOUR, "state": "DOWN", "reason": "xid 79"}],
        "node_facts": [{"cluster": "a", "node": "n1", "gpu": None, "key": "driver",
                        "from_at": END - HOUR, "value": "575.51"}],
        "node_failures": [{"cluster": "a", "failure_key": "f", "node": "n2", "start_at": END}],
        "nodes": [{"cluster": "a", "node": "n2", "first_seen_at": END - HOUR, "gpus": 8,
                   "source": "inventory"}],
        "tickets": [{"cluster": "a", "ticket_id": "t", "node": "n1", "opened_at": END}],
        "job_logs": [line(2, "CUDA error: out of memory"), line(3, "nothing that says why")],
        "training_metrics": [trained(1), trained(2)],
        "straggler_traces": [{"trace_id": "x", "job_id": "2", "traced_at": END + 6.5 * HOUR,
                              "path": "straggler_traces/x.parquet", "n_rows": 1, "dp": 2, "pp": 1,
                              "n_steps": 3, "wasted_ratio": 0.1}],
    }  # fmt: skip


def frame(table: str, rows: list[Row]) -> pd.DataFrame:
    found = pd.DataFrame(rows, dtype="object")
    for name in found.columns:
        if tables()[table].columns[name].type == "TIMESTAMPTZ":
            found[name] = pd.to_datetime(found[name], utc=True)
    return found


def publish(root: Path, rows: dict[str, list[Row]], *, ledger: bool = False) -> None:
    with writer(root) as building:
        building.merge({table: frame(table, found) for table, found in rows.items()})
        building.publish(ledger=ledger)


def ran(
    root: Path, rows: dict[str, list[Row]] | None = None, *, on_demand: bool = False
) -> set[str]:
    """Stages that the next publish with these rows runs; nothing is published."""
    with writer(root) as building:
        building.merge({table: frame(table, found) for table, found in (rows or {}).items()})
        context = stages.Context(root, load_site(root), read_said(root))
        return set(
            stages.derive(
                building.connection,
                context,
                building.changed,
                on_demand=on_demand,
                touched=building.touched.tables,
            )
        )


@pytest.fixture(scope="module")
def _published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with all of it, and its ledger; only to be copied."""
    folder = tmp_path_factory.mktemp("published")
    publish(folder, records(), ledger=True)
    return folder


@pytest.fixture
def root(_published: Path, tmp_path: Path) -> Path:
    """A copy of that store."""
    shutil.copytree(_published, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_every_stage_comes_after_those_that_write_what_it_reads() -> None:
    written: dict[str, set[str]] = {}
    for place, stage in enumerate(stages.stages()):
        for later in stages.stages()[place + 1 :]:
            assert not later.writes & stage.reads, (stage.name, later.name)
        for name in stage.writes:
            written.setdefault(name, set()).add(stage.name)
    assert {name: by for name, by in written.items() if len(by) > 1} == {}


def test_every_name_that_a_stage_declares_is_a_table_or_a_column() -> None:
    for stage in stages.stages():
        for name in (stage.reads | stage.writes | stage.carries | stage.needs) - {"models"}:
            table, _, column = name.partition(".")
            assert not column or column in tables()[table].columns, (stage.name, name)
        assert stage.carries <= stage.writes


def test_inputs_that_are_unknown_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModuleNotFoundError, match=r"analytics\.nothing"):
        stages.code_hash("analytics.nothing")
    context = stages.Context(tmp_path, Site(), Said())
    assert len({stages.fingerprint(stage, context) for stage in stages.stages()}) == len(
        EVERY_STAGE
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(EVERY_STAGE))
def test_a_stage_needs_no_table_and_no_column_that_it_does_not_declare(
    root: Path, name: str
) -> None:
    """On a database that holds what it declares and nothing else it runs as on the whole one."""
    (stage,) = (stage for stage in stages.stages() if stage.name == name)
    set_by_stages = {written for each in stages.stages() for written in each.writes}
    declared = stage.reads | stage.writes
    State(root).annotate("attempt:a/k3", "cause", "power", author="ada")
    context = stages.Context(root, load_site(root), read_said(root))
    store = Store.open(root)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone='UTC'")
        connection.execute(f"ATTACH '{store.path}' AS whole (READ_ONLY)")
        store.close()
        for table in {name.partition(".")[0] for name in declared} - {"models"}:
            hidden = {column for column in tables()[table].columns
                      if f"{table}.{column}" in set_by_stages - declared}  # fmt: skip
            without = f"EXCLUDE ({', '.join(hidden)})" if hidden else ""
            connection.execute(f"CREATE TABLE {table} AS SELECT * {without} FROM whole.{table}")
        connection.execute("DETACH whole")
        for table in (stage.writes - stage.carries) & tables().keys():
            connection.execute(f"DELETE FROM {table}")
        stage.run(connection, context)


def test_a_publish_with_nothing_changed_runs_no_stage(root: Path) -> None:
    assert ran(root) == set()
    assert ran(root, records()) == set()  # the same records again
    assert ran(root, on_demand=True) == set()


def test_new_events_run_what_rests_on_them_and_not_what_does_not(root: Path) -> None:
    events = {"health_events": [event(5)]}
    assert ran(root, events) == {
        "severities", "nodes", "clusters", "node_sizes", "failures", "incidents", "coverage",
        "running_time", "verdict_days",
    }  # fmt: skip


def test_new_steps_run_the_attempts_of_training_and_coverage(root: Path) -> None:
    assert ran(root, {"training_metrics": [trained(5)]}) == {"training_attempts", "coverage"}


@pytest.mark.slow
def test_a_job_runs_the_stages_of_logs_and_training_only_where_they_name_it(root: Path) -> None:
    of_others = {"log_attempts", "log_verdicts", "training_attempts"}
    assert ran(root, {"jobs": [job(7)]}) == {
        "ordinals", "node_sizes", "nodes", "clusters", "failures", "incidents", "coverage",
        "running_time", "totals", "verdict_days",
    }  # fmt: skip
    later = job(2, "FAILED", end_at=END + 8 * HOUR)
    assert ran(root, {"jobs": [later]}) >= of_others


@pytest.mark.slow
def test_more_rows_than_are_kept_count_as_the_whole_table(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("data.publish.merge.KEPT_ROWS", 1)
    assert ran(root, {"jobs": [job(7)]}).isdisjoint({"log_attempts", "log_verdicts"})
    assert ran(root, {"jobs": [job(7), job(8)]}) >= {"log_attempts", "log_verdicts"}


def test_an_annotation_reruns_verdicts_and_incidents(root: Path) -> None:
    State(root).annotate("attempt:a/k2", "cause", "power", author="ada")
    assert ran(root) == {
        "annotations", "site_model", "log_verdicts", "failures", "incidents", "verdict_days",
    }  # fmt: skip
    assert ran(root, on_demand=True) == {"ledger"}


def test_a_change_of_site_toml_reruns_what_rests_on_that_section(root: Path) -> None:
    (root / "site.toml").write_text("[attribution]\nbefore_minutes = 60\n", encoding="utf-8")
    assert ran(root) == {"failures", "incidents", "verdict_days"}
    (root / "site.toml").write_text("[cluster.a]\ngpus_per_node = 4\n", encoding="utf-8")
    assert ran(root) == {"clusters", "node_sizes", "running_time", "verdict_days"}
    (root / "site.toml").write_text("[runs]\nnames = 'apart'\n", encoding="utf-8")
    assert ran(root) == set()
    assert ran(root, on_demand=True) == {
        "runs", "training_attempts", "coverage", "ledger",
    }  # fmt: skip


def test_other_code_reruns_a_stage_and_what_reads_it(root: Path) -> None:
    with writer(root) as building:
        building.connection.execute("UPDATE stage_runs SET fingerprint = 'older' "
                                    "WHERE stage = 'severities'")  # fmt: skip
        building.publish()
    assert ran(root) == set()
    with writer(root) as building:
        building.connection.execute("UPDATE stage_runs SET fingerprint = 'older' "
                                    "WHERE stage = 'severities'")  # fmt: skip
        context = stages.Context(root, load_site(root), read_said(root))
        again = stages.derive(building.connection, context, ())
    assert again[0] == "severities"
    assert {*again} == {"severities", "failures", "incidents", "verdict_days"}


def test_code_and_tables_of_a_package_count_in_its_hash() -> None:
    whole, part = (stages.code_hash(f"analytics.failures{name}") for name in ("", ".xid"))
    assert whole != part
    assert whole == stages.code_hash("analytics.failures")


@pytest.mark.slow
def test_new_records_empty_the_ledger_and_nothing_else_does(root: Path) -> None:
    publish(root, {})
    assert n_rows(root, "gpu_time") > 0
    publish(root, {"tickets": [{"cluster": "a", "ticket_id": "u", "node": "n1", "opened_at": END}]})
    assert n_rows(root, "gpu_time") > 0
    publish(root, {"jobs": [job(7)]})
    assert n_rows(root, "gpu_time") == n_rows(root, "job_runs") == 0
    publish(root, {}, ledger=True)
    assert n_rows(root, "gpu_time") > 0


def test_what_loses_its_last_record_loses_its_derived_rows(root: Path) -> None:
    with writer(root) as building:
        for table in ("jobs", "job_nodes", "health_events"):
            building.connection.execute(f"DELETE FROM {table}")
            building.changed.add(table)
        building.publish()
    assert n_rows(root, "failures") == n_rows(root, "check_calibration") == 0
    store = Store.open(root)
    assert store.rows("SELECT DISTINCT retired FROM incidents") == [(True,)]
    store.close()


def n_rows(root: Path, table: str) -> int:
    store = Store.open(root)
    ((n,),) = store.rows(f"SELECT count(*) FROM {table}")
    store.close()
    return int(n)


def content(root: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All rows that count, sorted; of incidents those that live, whose ids tell their history."""
    read = {name: f"SELECT * FROM {name}" for name in tables().keys() - APART}
    read["incidents"] = "SELECT * EXCLUDE (incident_id) FROM incidents WHERE NOT retired"
    read["incident_members"] = "SELECT * EXCLUDE (incident_id) FROM incident_members"
    store = Store.open(root)
    found = {name: store.rows(f"{sql} ORDER BY ALL") for name, sql in read.items()}
    store.close()
    return found


def publishes(root: Path, parts: Iterable[dict[str, list[Row]]]) -> None:
    for part in parts:
        publish(root, part)
    publish(root, {}, ledger=True)


def together(pieces: Iterable[dict[str, list[Row]]]) -> dict[str, list[Row]]:
    """The rows of several pieces, by table."""
    found: dict[str, list[Row]] = {}
    for piece in pieces:
        for table, rows in piece.items():
            found.setdefault(table, []).extend(rows)
    return found


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
def test_publishes_bit_by_bit_give_the_store_of_one_from_scratch(tmp_path: Path, seed: int) -> None:
    pieces = [{table: [row]} for table, rows in records().items() for row in rows]
    random.Random(seed).shuffle(pieces)
    at_once = 1 if seed else 6
    publishes(tmp_path / "one", [records()])
    publishes(tmp_path / "many", [together(pieces[n : n + at_once])
                                  for n in range(0, len(pieces), at_once)])  # fmt: skip
    assert content(tmp_path / "many") == content(tmp_path / "one")


OF_THE_PUBLISH = ("node_written", "cluster_from")
"""Set while records are merged: a node's name as it was written, and who knows whose it is."""


def test_every_derived_column_is_written_by_a_stage() -> None:
    written = {name for stage in stages.stages() for name in stage.writes}
    derived = {
        f"{table.name}.{column}"
        for table in tables().values()
        if table.name not in written
        for column, facts in table.columns.items()
        if facts.derived and column not in OF_THE_PUBLISH
    }
    assert derived <= written, derived - written
