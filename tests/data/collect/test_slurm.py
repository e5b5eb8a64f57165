"""Collecting on a Slurm host: what is asked, what comes in, and until when it is known to be all."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app.actions import roll_back
from data.collect import collect
from data.collect.config import load_sources
from data.errors import StoreBusyError
from data.ingest import Options
from data.publish import writer
from tests.data.collect.conftest import BEGIN, DAY, HOUR, iso

if TYPE_CHECKING:
    from typing import Any

    from data.collect.source import Source
    from tests.data.collect.conftest import Host

NOW = BEGIN + 12 * HOUR
MARGIN = timedelta(seconds=300)
JOBS = "SELECT job_id, state, end_at FROM jobs ORDER BY 1, 2"
WINDOWS = "SELECT from_at, until_at, result, n_rows FROM collected_windows WHERE source = 'sacct'"


@pytest.fixture
def only(tmp_path: Path) -> Any:
    """The sources of some commands, as a configuration states them."""

    def stated(*commands: str, look_back_days: int = 0, more: str = "") -> list[Source]:
        path = tmp_path / "collect.toml"
        names = ", ".join(f'"{each}"' for each in commands)
        path.write_text(
            f'[[source]]\nkind = "slurm"\ncommands = [{names}]\n'
            f"look_back_days = {look_back_days}\n{more}"
        )
        return load_sources(path)

    return stated


@pytest.mark.slow
def test_what_a_host_tells_comes_in_with_the_time_until_which_it_is_all(host: Host) -> None:
    host.job(1, BEGIN, (1, 3))
    host.job(2, BEGIN, (1, 2), state="NODE_FAIL", node="n2")
    host.says("events", f"alps|n2|{int((BEGIN + 2 * HOUR).timestamp())}|Unknown|DOWN|gone|root\n")
    line = "2026-03-02T02:00:01+0000 n1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off"
    host.says("kernel", f"-- Journal begins --\n{line}\n")
    collected = host.collect(NOW, since=BEGIN)
    assert [each.error for each in collected.outcomes] == [None] * 4
    assert host.rows(JOBS) == [
        ("1", "COMPLETED", BEGIN + 3 * HOUR), ("2", "NODE_FAIL", BEGIN + 2 * HOUR),
    ]  # fmt: skip
    assert host.rows("SELECT cluster, node, start_at FROM node_events") == [
        ("alps", "n2", BEGIN + 2 * HOUR)
    ]
    assert host.rows("SELECT cluster, node, xid FROM health_events") == [("alps", "n1", 79)]
    until = {each.settings.reader: each.collected_until for each in collected.outcomes}
    assert until["sacct"] == until["sacctmgr-events"] == NOW - MARGIN
    assert until["kernel-log"] == NOW - timedelta(seconds=60)
    assert host.rows("SELECT sum(gpu_seconds) FROM gpu_time")[0][0] > 0, "the ledger is there"
    assert all(" TZ=UTC " in f" {call} " for call in host.calls)
    assert not (host.root / "collecting").exists()


def test_a_quiet_source_was_collected_and_one_that_is_silent_was_not(host: Host, only: Any) -> None:
    sources = only("sacct", "sacctmgr", "journalctl")
    quiet = host.collect(NOW, sources, since=BEGIN)
    assert [each.error for each in quiet.outcomes] == [None] * 3
    results = host.rows("SELECT cluster, covers, result, n_rows FROM collected_windows ORDER BY 2")
    assert results == [
        ("alps", "health_events.kernel", "empty", 0),
        ("alps", "jobs", "empty", 0),
        ("alps", "node_events", "empty", 0),
    ]
    host.says("silent")
    silent = host.outcome("sacctmgr", NOW + HOUR, sources=sources)
    assert silent.error == ("sacctmgr: printed nothing, not even its header: does slurmdbd answer?")
    assert silent.collected_until == NOW - MARGIN


def test_the_next_time_asks_from_where_the_last_ended_less_an_overlap(
    host: Host, only: Any
) -> None:
    sources = only("sacct", look_back_days=3)
    first = BEGIN - 2 * DAY
    host.collect(NOW - DAY, sources, since=first)
    host.collect(NOW + HOUR, sources)
    asked = [call.partition(" -S ")[2][:42] for call in host.asked]
    days = [first + day * DAY for day in range(3)]
    assert asked == [
        f"{iso(days[0])} -E {iso(days[1])}",
        f"{iso(days[1])} -E {iso(NOW - DAY - MARGIN)}",
        # three days were never looked back upon, and there are no more than these
        *(f"{iso(day)} -E {iso(min(day + DAY, NOW + HOUR - MARGIN))}" for day in days),
    ]
    host.collect(NOW + 2 * HOUR, sources)
    until = NOW + HOUR - MARGIN
    assert f" -S {iso(until - 2 * HOUR)} -E {iso(until + HOUR)} " in host.asked[-1]


@pytest.mark.slow
def test_a_long_outage_is_caught_up_a_day_at_a_time(host: Host, only: Any) -> None:
    for day in range(5):
        host.job(day, BEGIN + day * DAY, (1, 30 if day == 1 else 2))
    host.collect(BEGIN + HOUR, only("sacct"), since=BEGIN)
    host.collect(BEGIN + 4 * DAY + 12 * HOUR, only("sacct"))
    edges = host.rows(f"{WINDOWS} AND from_at >= '{BEGIN + DAY}' ORDER BY 1")
    assert [(begin, end) for begin, end, *_ in edges] == [
        *((BEGIN + day * DAY, BEGIN + (day + 1) * DAY) for day in (1, 2, 3)),
        (BEGIN + 4 * DAY, BEGIN + 4 * DAY + 12 * HOUR - MARGIN),
    ]
    assert [state for _, state, _ in host.rows(JOBS)] == ["COMPLETED"] * 5


@pytest.mark.slow
def test_a_job_whose_end_is_written_late_is_asked_for_by_its_number(host: Host, only: Any) -> None:
    sources = only("sacct", more="overlap_minutes = 0\n")
    late = BEGIN + 3 * DAY
    host.job(1, BEGIN, (1, 5), written_at=late)
    host.job(2, BEGIN, (1, 100))
    host.collect(BEGIN + 4 * HOUR, sources, since=BEGIN)
    host.collect(late - HOUR, sources)  # it looks like one that runs, though it ended
    assert host.rows(JOBS) == [("1", "RUNNING", None), ("2", "RUNNING", None)]
    host.collect(late + HOUR, sources)
    assert host.rows(JOBS) == [("1", "COMPLETED", BEGIN + 5 * HOUR), ("2", "RUNNING", None)]
    assert " -j 1 " in host.asked[-1], "not 2, which the answer held"


@pytest.mark.slow
def test_jobs_that_the_accounting_has_no_more_are_told(host: Host, only: Any) -> None:
    host.job(1, BEGIN, (1, 5))
    host.collect(BEGIN + 2 * HOUR, only("sacct"), since=BEGIN)
    host.says("purged")
    outcome = host.outcome("sacct", NOW, sources=only("sacct"))
    assert outcome.notices == [
        "sacct: jobs that had not ended and that the accounting has no more: 1"
    ]
    assert host.rows(JOBS) == [("1", "RUNNING", None)]


@pytest.mark.slow
def test_a_source_that_fails_stops_no_other_and_is_asked_again(host: Host, only: Any) -> None:
    sources = only("sacct", "sacctmgr")
    host.job(1, BEGIN, (1, 3))
    host.collect(BEGIN + 2 * HOUR, sources, since=BEGIN)
    told = host.says("sacct.fails")
    host.says("sacct.says", "sacct: error: Problem talking to the database")
    failed, other = host.collect(NOW, sources).outcomes
    assert (failed.error, failed.collected_until) == (
        "sacct failed with exit code 1: sacct: error: Problem talking to the database",
        BEGIN + 2 * HOUR - MARGIN,
    )
    assert (other.error, other.collected_until) == (None, NOW - MARGIN)
    assert host.rows(f"{WINDOWS} AND result = 'failed'") == [
        (BEGIN + 2 * HOUR - MARGIN, NOW, "failed", None)
    ]
    told.unlink()
    assert host.collect(NOW + HOUR, sources).outcomes[0].error is None
    assert host.rows(JOBS) == [("1", "COMPLETED", BEGIN + 3 * HOUR)]


def test_a_command_that_hangs_is_ended_with_all_that_it_started(host: Host, only: Any) -> None:
    host.says("sacct.hangs")
    outcome = host.outcome("sacct", NOW, sources=only("sacct", more="timeout_s = 1\n"))
    assert outcome.error == "sacct: gave no answer within 1 s"
    child = Path("/proc", (host.folder / "hangs.pid").read_text().strip(), "stat")
    limit = time.monotonic() + 20
    while child.exists() and child.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < limit, "what it started goes on"
        time.sleep(0.01)


def test_a_command_that_is_not_there_is_told(host: Host, only: Any) -> None:
    (host.folder / "bin" / "sacctmgr").unlink()
    sacct, events = host.collect(NOW, only("sacct", "sacctmgr"), since=BEGIN).outcomes
    assert sacct.error is None
    assert events.error == "sacctmgr: no such command on the PATH of this host"
    assert events.collected_until is None


def test_a_host_where_nothing_can_be_had_leaves_no_store(host: Host, only: Any) -> None:
    host.says("sacct.fails")
    assert host.outcome("sacct", NOW, sources=only("sacct"), since=BEGIN).error is not None
    assert not host.root.exists()


def test_half_a_line_is_not_read(host: Host, only: Any) -> None:
    path = host.folder / "bin" / "sacct"
    path.write_text('#!/bin/sh\nprintf "JobID|State|Submit|Start|End\\n1|COMPLETED|17"\n')
    outcome = host.outcome("sacct", NOW, sources=only("sacct"), since=BEGIN)
    assert outcome.error == "sacct: its answer ends in the middle of a line"
    assert not host.root.exists()


def test_a_field_that_an_older_slurm_lacks_is_left_out(host: Host, only: Any) -> None:
    host.says("old")
    host.job(1, BEGIN, (1, 3))
    assert host.outcome("sacct", NOW, sources=only("sacct"), since=BEGIN).error is None
    assert [job for job, *_ in host.rows(JOBS)] == ["1"]


@pytest.mark.parametrize(
    "said",
    [
        "No journal files were found.",
        "Hint: You are currently not seeing messages from other users and the system.",
    ],
)
def test_a_journal_that_may_not_be_read_is_not_a_quiet_one(
    host: Host, only: Any, said: str
) -> None:
    host.says("journalctl.says", said)
    outcome = host.outcome("kernel-log", NOW, sources=only("journalctl"), since=BEGIN)
    assert outcome.error is not None
    assert "member of the group systemd-journal" in outcome.error


def test_a_journal_covers_no_time_before_its_first_entry(host: Host, only: Any) -> None:
    first = BEGIN + 5 * HOUR
    host.says("boots", f" 0 1f2e Mon {first:%Y-%m-%d %H:%M:%S} UTC—Mon 2026-03-02 11:00:00 UTC\n")
    host.collect(NOW, only("journalctl"), since=BEGIN)
    ((begin, node, whole),) = host.rows(
        "SELECT from_at, node, whole_cluster FROM collected_windows"
    )
    assert (begin, whole) == (first, False)
    assert node, "it is the log of one host"


def test_a_clock_that_was_set_back_takes_nothing_back(host: Host, only: Any) -> None:
    sources = only("sacct")
    host.job(1, BEGIN, (1, 3))
    host.collect(NOW, sources, since=BEGIN)
    outcome = host.outcome("sacct", NOW - 3 * HOUR, sources=sources)
    assert (outcome.error, outcome.collected_until) == (None, NOW - MARGIN)
    assert host.rows("SELECT max(until_at) FROM collected_windows") == [(NOW - MARGIN,)]


@pytest.mark.slow
def test_what_is_asked_again_lists_a_broken_record_once(host: Host, only: Any) -> None:
    host.job(1, BEGIN + 10 * HOUR, (0.5, 1), state="MELTED")
    host.job(2, BEGIN + 10 * HOUR, (0.5, 1))
    told = []
    for hour in range(2):
        outcome = host.outcome("sacct", NOW + hour * HOUR, sources=only("sacct"), since=BEGIN)
        told.append(outcome.told_rejected)
    assert told == ["sacct: 1 of 2 records rejected: State is no Slurm state (1)", None]
    assert host.rows("SELECT count(*) FROM rejected_rows") == [(1,)]
    assert host.rows("SELECT sum(rows_rejected) FROM ingests") == [(2,)]


@pytest.mark.slow
def test_an_answer_of_broken_records_alone_fails_unless_they_are_told_already(
    host: Host, only: Any
) -> None:
    host.job(1, NOW - 3 * HOUR, (0.5, 1.5), state="MELTED")
    outcome = host.outcome("sacct", NOW, sources=only("sacct"), since=BEGIN)
    assert "1 of 1 records rejected: State is no Slurm state (1): none is kept" in str(
        outcome.error
    )
    assert outcome.collected_until is None
    host.job(2, NOW - 3 * HOUR, (0, 0.5))
    assert host.outcome("sacct", NOW, sources=only("sacct"), since=BEGIN).error is None
    outcome = host.outcome("sacct", NOW + HOUR, sources=only("sacct"))
    assert (outcome.error, outcome.told_rejected) == (None, None)
    assert outcome.collected_until == NOW + HOUR - MARGIN


def test_another_writer_is_waited_for_or_told(host: Host, only: Any) -> None:
    host.collect(NOW, only("sacct"), since=BEGIN)
    before = host.rows(WINDOWS)
    with (
        writer(host.root),
        pytest.raises(StoreBusyError, match=r"is being written by process \d+ .*--wait SECONDS"),
    ):
        host.collect(NOW + HOUR, only("sacct"), wait_s=0.2)
    assert host.rows(WINDOWS) == before
    assert host.outcome("sacct", NOW + HOUR, sources=only("sacct")).error is None


def test_records_that_name_no_cluster_wait_for_slurm_to_say_it(host: Host, only: Any) -> None:
    host.says("scontrol.fails")
    outcome = host.outcome("kernel-log", NOW, sources=only("journalctl"), since=BEGIN)
    assert outcome.error is not None
    assert "`scontrol show config` does not say it" in outcome.error
    (host.root).mkdir()
    (host.root / "site.toml").write_text("[cluster.jura]\n")
    assert host.outcome("kernel-log", NOW, sources=only("journalctl"), since=BEGIN).error is None
    assert host.rows("SELECT cluster FROM collected_windows") == [("jura",)]


@pytest.mark.slow
def test_what_is_taken_back_is_collected_again(host: Host, only: Any) -> None:
    host.job(1, BEGIN, (1, 3))
    host.job(2, BEGIN + 5 * HOUR, (1, 2))
    host.collect(BEGIN + 4 * HOUR, only("sacct"), since=BEGIN)
    host.collect(NOW, only("sacct"))
    before = host.rows(JOBS)
    ((last,),) = host.rows("SELECT max(ingest_id) FROM ingests WHERE command = 'faultline collect'")
    roll_back(host.root, ingest_id=last)
    assert [job for job, *_ in host.rows(JOBS)] == ["1"]
    outcome = host.outcome("sacct", NOW + HOUR, sources=only("sacct"))
    assert outcome.collected_until == NOW + HOUR - MARGIN
    assert host.rows(JOBS) == before


@pytest.mark.slow
def test_a_first_collect_that_is_ended_keeps_the_days_it_had(host: Host, only: Any) -> None:
    for day in range(5):
        host.job(day + 1, BEGIN - (5 - day) * DAY, (1, 2))

    def ended_at_the_fourth(message: str) -> None:
        if message.startswith("sacct: ") and len(host.asked) == 4:
            raise KeyboardInterrupt

    host.says("now", iso(BEGIN))
    with pytest.raises(KeyboardInterrupt):
        collect(
            host.root,
            only("sacct"),
            Options(progress=ended_at_the_fourth),
            now=BEGIN,
            since=BEGIN - 5 * DAY,
        )
    assert host.rows("SELECT count(DISTINCT job_id) FROM jobs") == [(4,)]
    asked = len(host.asked)
    outcome = host.outcome("sacct", BEGIN, sources=only("sacct"))
    assert (outcome.error, outcome.collected_until) == (None, BEGIN - MARGIN)
    assert host.rows("SELECT count(DISTINCT job_id) FROM jobs") == [(5,)]
    assert len(host.asked) - asked <= 3, "the days that it had are not asked for again"
