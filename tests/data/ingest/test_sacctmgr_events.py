"""Events of nodes as sacctmgr shows them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from data.errors import SourceError
from data.ingest.reader import Batch, Options, Source
from data.ingest.readers.schedulers import sacctmgr_events

if TYPE_CHECKING:
    from pathlib import Path

HEADER = "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User"
START = datetime(2025, 2, 23, 16, 24, 18, tzinfo=UTC)
EVENT = "hal|n1|2025-02-23T16:24:18|2025-02-23T17:24:18|DOWN*|Not responding|slurm(64030)"


def read(folder: Path, text: str, **options: Any) -> Batch:
    path = folder / "events"
    path.write_text(text, encoding="utf-8", newline="")
    source = Source(path, path.name, datetime(2025, 3, 1, tzinfo=UTC))
    return sacctmgr_events.read(source, Options(**options), duckdb.cursor())


def read_events(folder: Path, *events: str, **options: Any) -> Batch:
    batch = read(folder, "\n".join([HEADER, *events, ""]), **options)
    skipped = sum(batch.skipped_by_reason.values())
    assert batch.rows_read == batch.rows_kept + skipped + len(batch.rejected)
    return batch


def rows(batch: Batch) -> list[dict[str, Any]]:
    frame = batch.tables["node_events"]
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


def test_an_event_becomes_an_interval_out_of_service(tmp_path: Path) -> None:
    batch = read_events(tmp_path, EVENT, timezone="UTC")
    assert rows(batch) == [
        {
            "cluster": "hal",
            "node": "n1",
            "start_at": START,
            "end_at": START + timedelta(hours=1),
            "state": "DOWN",
            "reason": "Not responding",
            "reason_user": "slurm",
            "planned": None,
        }
    ]
    assert (batch.first_at, batch.last_at) == (START, START + timedelta(hours=1))
    assert (batch.clusters, batch.notices, batch.rejected) == (("hal",), [], [])


@pytest.mark.parametrize(
    "text",
    [
        (
            "User|State|TimeEnd|NodeName|Reason|TimeStart|Cluster\n"
            "slurm(64030)|DOWN*|2025-02-23T17:24:18|n1|Not responding|2025-02-23T16:24:18|hal\n"
        ),
        f"{HEADER}|\n{EVENT}|\n",  # sacctmgr -p
        f"\ufeff{HEADER}\r\n{EVENT}\r\n",
        "Cluster|Node Name|Start|End|State|Reason|User\n" + EVENT,
        f"{HEADER}|Duration|CPUs|Event|CondFlags\n{EVENT}|01:00:00|128|Node|\n",
    ],
)
def test_columns_are_found_by_name_in_any_order(tmp_path: Path, text: str) -> None:
    expected = rows(read_events(tmp_path, EVENT))
    assert rows(read(tmp_path, text)) == expected


def test_columns_and_delimiter_can_be_given(tmp_path: Path) -> None:
    expected = rows(read_events(tmp_path, EVENT))
    columns = tuple(HEADER.lower().replace("nodename", "nodename%40").split("|"))
    assert rows(read(tmp_path, EVENT, columns=columns)) == expected
    assert rows(read(tmp_path, f"{HEADER}\n{EVENT}", columns=columns)) == expected
    text = f"{HEADER}\n{EVENT}".replace("|", "@#")
    assert rows(read(tmp_path, text, delimiter="@#")) == expected


def test_a_host_list_gives_a_row_for_each_node(tmp_path: Path) -> None:
    batch = read_events(tmp_path, EVENT.replace("n1", "n[001-003],login1"))
    assert [row["node"] for row in rows(batch)] == ["n001", "n002", "n003", "login1"]
    assert batch.rows_kept == 1


@pytest.mark.parametrize("end", ["Unknown", "None", "", "unknown"])
def test_an_event_that_lasts_has_no_end(tmp_path: Path, end: str) -> None:
    batch = read_events(tmp_path, EVENT.replace("2025-02-23T17:24:18", end))
    assert [row["end_at"] for row in rows(batch)] == [None]
    assert batch.last_at == START


@pytest.mark.parametrize(
    ("start", "time"),
    [
        ("2025-02-23T16:24:18", START - timedelta(hours=1)),  # local
        ("2025-02-23 16:24:18", START - timedelta(hours=1)),
        ("2025-02-23T16:24:18Z", START),
        ("2025-02-23T11:24:18-0500", START),
        ("1740327858", START),
    ],
)
def test_times_are_local_unless_they_carry_an_offset(
    tmp_path: Path, start: str, time: datetime
) -> None:
    event = EVENT.replace("2025-02-23T16:24:18", start)
    for zone in ({"timezone": "Europe/Berlin"}, {"timezones": {"hal": "Europe/Berlin"}}):
        (row,) = rows(read_events(tmp_path, event, **zone))
        assert row["start_at"] == time


def test_an_export_tells_which_columns_it_lacks(tmp_path: Path) -> None:
    batch = read(tmp_path, "NodeName|TimeStart|User\nn1|2025-02-23T16:24:18|root\n", timezone="UTC")
    names = [str(text).split()[2] for text in batch.notices]
    assert (batch.rows_kept, names) == (1, ["TimeEnd:", "State:", "Reason:"])


def test_without_a_zone_utc_is_assumed_and_said(tmp_path: Path) -> None:
    batch = read_events(tmp_path, EVENT)
    assert batch.notices == ["times without a zone, read as UTC (pass --timezone): 2"]


def test_delimiters_and_line_breaks_inside_a_reason_belong_to_it(tmp_path: Path) -> None:
    batch = read_events(
        tmp_path,
        EVENT.replace("Not responding", "XID | 79 | lost"),
        EVENT.replace("Not responding", "check failed:\nGPU 3"),
        EVENT,
    )
    assert batch.rejected == []
    assert sorted(row["reason"] for row in rows(batch)) == [
        "Not responding",
        "XID | 79 | lost",
        r"check failed:\nGPU 3",
    ]


def test_a_torn_event_does_not_swallow_the_next_one(tmp_path: Path) -> None:
    torn, next_event = EVENT[:-20], EVENT.replace("Not responding", "XID | 79")
    batch = read_events(tmp_path, torn, next_event)
    assert [row["reason"] for row in rows(batch)] == ["XID | 79"]
    assert [(r.line_no, r.reason) for r in batch.rejected] == [(2, "too few fields")]


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (EVENT.replace("n1", ""), "no node"),
        (EVENT.replace("n1", "None assigned"), "no node"),
        (EVENT.replace("n1", "n[3-"), "host list is broken"),
        (EVENT.replace("2025-02-23T16", "2025-02-30T16"), "impossible time"),
        (EVENT.replace("2025-02-23T17:24:18", "soon"), "impossible time"),
        (EVENT.replace("2025-02-23T16:24:18", "Unknown"), "no start"),
        (EVENT.replace("T17", "T15"), "end before start"),
        ("hal|n1|2025-02-23T16:24:18", "too few fields"),
        (EVENT.replace("T16:24:18|", "T16:24:18||"), "too many fields"),
    ],
)
def test_a_broken_event_is_rejected_with_its_reason(
    tmp_path: Path, event: str, reason: str
) -> None:
    batch = read_events(tmp_path, EVENT, "", event, EVENT)
    (rejected,) = batch.rejected
    assert (rejected.line_no, rejected.reason, rejected.raw) == (4, reason, event)
    assert (batch.rows_read, batch.rows_kept) == (3, 2)


def test_events_of_the_cluster_and_repeated_headers_are_skipped(tmp_path: Path) -> None:
    registered = "hal||2025-02-23T16:24:18|2025-02-23T17:24:18||Cluster Registered TRES|"
    batch = read_events(tmp_path, registered, HEADER, EVENT)
    assert (batch.rows_read, batch.rows_kept) == (3, 1)
    assert batch.skipped_by_reason == {"cluster_event": 1, "header": 1}
    batch = read(tmp_path, f"{HEADER}|Event\n{EVENT}|Node\n{EVENT}|Cluster\n")
    assert (batch.rows_kept, batch.skipped_by_reason) == (1, {"cluster_event": 1})
    batch = read(tmp_path, "Cluster|NodeName|Start|Reason\nhal||1740327858|Cluster Registered\n")
    assert batch.skipped_by_reason == {"cluster_event": 1}


@pytest.mark.parametrize(
    ("raw", "state"),
    [
        ("DOWN", "DOWN"),
        ("down*", "DOWN"),
        ("DRAIN$", "DRAIN"),
        ("DOWN*+DRAIN", "DOWN+DRAIN"),
        ("down+drain*", "DOWN+DRAIN"),
        ("IDLE+DRAIN+NOT_RESPONDING", "IDLE+DRAIN+NOT_RESPONDING"),
        ("DRNG", "DRNG"),
        ("", None),
    ],
)
def test_states_are_in_capitals_without_marks(tmp_path: Path, raw: str, state: str | None) -> None:
    (row,) = rows(read_events(tmp_path, EVENT.replace("DOWN*", raw)))
    assert row["state"] == state


@pytest.mark.parametrize(
    ("state", "reason", "planned"),
    [
        ("DOWN$", "", True),
        ("DRAIN@", "", True),
        ("MAINT", "", True),
        ("DRAIN+MAINTENANCE", "", True),
        ("DOWN+REBOOT_REQUESTED", "", True),
        ("DRAIN", "Scheduled maintenance", True),
        ("DRAIN", "maint_2025_03", True),
        ("DRAIN", "Reboot ASAP", True),
        ("DOWN", "reboot requested : reboot issued", True),
        ("DRAIN", "reservation swap-racks", True),
        ("DOWN", "Node unexpectedly rebooted", None),
        ("DRAIN", "emergency maintenance", None),
        ("DRAIN", "unplanned maintenance", None),
        ("DOWN*", "Not responding", None),
        ("DRAIN", "Kill task failed", None),
        ("DRAIN", "replacement scheduled", None),
        ("DRAIN", "", None),
    ],
)
def test_only_announced_maintenance_is_planned_and_the_rest_stays_unknown(
    tmp_path: Path, state: str, reason: str, planned: bool | None
) -> None:
    event = EVENT.replace("DOWN*", state).replace("Not responding", reason)
    (row,) = rows(read_events(tmp_path, event))
    assert row["planned"] is planned


def test_cluster_comes_from_the_option_else_the_record_else_the_default(tmp_path: Path) -> None:
    assert read_events(tmp_path, EVENT, cluster="rsc").clusters == ("rsc",)
    assert read_events(tmp_path, EVENT, default_cluster="rsc").clusters == ("hal",)
    text = "NodeName|TimeStart\nn1|2025-02-23T16:24:18\n"
    assert read(tmp_path, text, default_cluster="rsc").clusters == ("rsc",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        ("hello world\n", "no column NodeName, there are: hello world"),
        ("Cluster|NodeName|State\n", "no column TimeStart, there are: Cluster, NodeName, State"),
        ("   Cluster        NodeName           TimeStart\n", "no column NodeName"),
        (EVENT, "no column NodeName"),
    ],
)
def test_a_file_of_another_kind_is_refused_in_one_line(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(SourceError, match=f"^events: {message}") as error:
        read(tmp_path, text)
    assert "\n" not in str(error.value)


def test_a_header_alone_is_an_empty_batch(tmp_path: Path) -> None:
    batch = read(tmp_path, f"{HEADER}\n")
    assert (batch.rows_read, batch.clusters, rows(batch)) == (0, (), [])


def test_progress_is_told_of_a_long_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sacctmgr_events, "_PROGRESS_LINES", 2)
    told: list[str] = []
    read_events(tmp_path, EVENT, EVENT, progress=told.append)
    assert told == ["events: 2 lines"]


@pytest.mark.parametrize(
    ("head", "is_events"),
    [
        (f"{HEADER}\n{EVENT}\n", True),
        ("Cluster|Node Name|Start|End|State|Reason|User\n", True),
        ("JobID|Start|End|State|NodeList\n", False),
        ("NodeName|State\n", False),
        (EVENT, False),
        ("", False),
    ],
)
def test_only_the_header_of_events_is_recognised(head: str, is_events: bool) -> None:
    assert sacctmgr_events.sniff(head) is is_events
