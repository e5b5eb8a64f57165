"""RAS logs of Blue Gene/L: the real sample of LogHub, and lines that are none."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from data.errors import SourceError
from data.ingest.reader import Batch, Options, Source
from data.ingest.readers import known_readers
from data.ingest.readers.health import ras_log

BGL = Path(__file__).parents[4] / "shared" / "data" / "loghub" / "BGL_2k.log"
needs_files = pytest.mark.skipif(not BGL.exists(), reason="no ../shared/data/loghub here")
PLACE = "R30-M0-N9-C:J16-U01"
ALERT = (
    f"KERNDTLB 1118536327 2005.06.11 {PLACE} 2005-06-11-17.32.07.581048 {PLACE} RAS KERNEL FATAL "
    "data TLB error interrupt"
)


def read(path: Path, **options: Any) -> Batch:
    truncated = options.pop("truncated", None)
    source = Source(path, path.name, datetime(2025, 3, 1, tzinfo=UTC), truncated=truncated)
    return ras_log.READER.read(source, Options(**options), duckdb.cursor())


def read_text(folder: Path, text: str, **options: Any) -> Batch:
    path = folder / "bgl"
    path.write_bytes(text.encode())
    return read(path, **options)


@needs_files
def test_the_real_sample_holds_its_alerts() -> None:
    batch = read(BGL)
    frame = batch.tables["health_events"]
    assert (batch.rows_read, batch.rejected.total) == (2000, 0)
    assert batch.skipped_by_reason == {"info": 1597, "no_location": 37}
    assert int((frame["severity"] == "critical").sum()) == 143
    assert int((frame["check_name"] == "ras_kerndtlb").sum()) == 60
    assert [
        name for name, reader in known_readers().items() if reader.sniff(BGL.read_text()[:9999])
    ] == ["ras-log"]


@needs_files
def test_without_labels_severity_and_message_find_every_alert_of_the_real_sample(
    tmp_path: Path,
) -> None:
    lines = BGL.read_text(encoding="utf-8").splitlines()
    labelled = dict(enumerate((line.partition(" ")[0] != "-" for line in lines), 1))
    plain = read_text(tmp_path, "\n".join(line.partition(" ")[2] for line in lines))
    assert (plain.rows_read, plain.rejected.total) == (2000, 0)
    frame = plain.tables["health_events"]
    critical = frame[frame["severity"] == "critical"]
    alerts = read(BGL).tables["health_events"].query("severity == 'critical'")
    places = ["node", "observed_at", "message"]
    found = critical.merge(alerts[places].drop_duplicates(), on=places)
    assert (len(found), sum(labelled.values()), len(critical)) == (143, 143, 153)


RAW = f"2005-06-11-17.32.07.581048 {PLACE} {PLACE} RAS KERNEL FATAL data TLB error interrupt"


@pytest.mark.parametrize(
    ("line", "severity"),
    [
        (RAW, "critical"),
        (RAW.replace(f"{PLACE} {PLACE}", PLACE), "critical"),  # the place once
        (RAW.replace("FATAL", "failure"), "critical"),
        (RAW.replace("FATAL", "SEVERE"), "warning"),
        (RAW.replace("FATAL", "INFO"), None),
        (RAW.replace(PLACE, "bglio12.rack-3"), "critical"),
        (RAW.replace("data TLB error interrupt", "data address: 0x00000002"), "warning"),
        (RAW.replace("data TLB error interrupt", "data address space................0"), "warning"),
        (RAW.replace("KERNEL FATAL data", "APP FATAL /home/a.out: No such file or directory"),
         "warning"),
        (RAW.replace("KERNEL FATAL data", "APP FATAL Link has been severed"), "critical"),
    ],
    ids=str,
)  # fmt: skip
def test_a_line_without_label_says_itself_how_grave_it_is(
    tmp_path: Path, line: str, severity: str | None
) -> None:
    found = read_text(tmp_path, line).tables["health_events"]["severity"].tolist()
    assert found == ([] if severity is None else [severity])


def test_a_raw_line_has_the_time_of_the_clusters_zone(tmp_path: Path) -> None:
    lines = f"{RAW}\n{ALERT}\n{ALERT.removeprefix('KERNDTLB ')}\n{RAW[:40]}\n2005-13{RAW[7:]}"
    batch = read_text(tmp_path, lines, timezone="America/Los_Angeles")
    frame = batch.tables["health_events"]
    assert set(frame["observed_at"]) == {datetime(2005, 6, 12, 0, 32, 7, 581048, tzinfo=UTC)}
    assert frame["check_name"].tolist() == ["ras_kernel", "ras_kerndtlb", "ras_kernel"]
    assert batch.rejected.by_reason == {"not a RAS line": 1, "impossible time": 1}
    assert ras_log.sniff(lines)


def test_an_alert_has_its_class_place_and_instant(tmp_path: Path) -> None:
    batch = read_text(tmp_path, ALERT + "\n", timezone="Europe/Paris", cluster="bgl")
    (row,) = batch.tables["health_events"].to_dict("records")
    assert (row["cluster"], row["node"], row["check_name"], row["severity"], row["message"]) == (
        "bgl", PLACE, "ras_kerndtlb", "critical", "data TLB error interrupt",
    )  # fmt: skip
    assert row["observed_at"] == datetime(2005, 6, 12, 0, 32, 7, 581048, tzinfo=UTC)


@pytest.mark.parametrize(
    ("line", "severity"),
    [
        (ALERT.replace("KERNDTLB", "-"), "warning"),  # people called it no alert
        (ALERT.replace("KERNDTLB", "-").replace("FATAL", "ERROR"), "warning"),
        (ALERT.replace("FATAL", "INFO"), "critical"),
        (ALERT.replace("KERNDTLB", "-").replace("FATAL", "INFO"), None),
        (ALERT.removesuffix(" data TLB error interrupt"), "critical"),
    ],
)
def test_only_alerts_are_critical(tmp_path: Path, line: str, severity: str | None) -> None:
    found = read_text(tmp_path, line + "\r\n").tables["health_events"]["severity"].tolist()
    assert found == ([] if severity is None else [severity])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("a line of something else", "not a RAS line"),
        (ALERT.replace("1118536327", "yesterday"), "not a RAS line"),
        (ALERT.replace("KERNDTLB", "-").replace("FATAL", "LOUD"), "unknown severity"),
        (ALERT[:60], "not a RAS line"),
    ],
)
def test_a_broken_line_is_rejected_with_its_text(tmp_path: Path, line: str, reason: str) -> None:
    batch = read_text(tmp_path, f"\ufeff{ALERT}\n\n{line}\n")
    (rejected,) = batch.rejected
    assert (batch.rows_kept, rejected.line_no, rejected.reason, rejected.raw) == (
        1, 3, reason, line,
    )  # fmt: skip


def test_the_end_of_a_cut_file_is_no_record(tmp_path: Path) -> None:
    batch = read_text(tmp_path, f"{ALERT}\n{ALERT[:-4]}", truncated="cut")
    assert batch.rejected.by_reason == {"line cut off at the end of the file": 1}


def test_an_empty_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="holds no records"):
        read_text(tmp_path, "\n")


def test_the_same_events_in_any_order_have_the_same_keys(tmp_path: Path) -> None:
    lines = [ALERT, ALERT.replace("327 ", "328 "), ALERT, ALERT.replace("N9", "N8")]
    first = read_text(tmp_path, "\n".join(lines)).tables["health_events"]["event_id"]
    again = read_text(tmp_path, "\n".join(reversed(lines))).tables["health_events"]["event_id"]
    assert set(first) == set(again)
    assert first.nunique() == len(lines)
