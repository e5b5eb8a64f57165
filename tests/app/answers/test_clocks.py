"""What is said where the times of a source contradict those of another."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from app.actions import Options, ingest_files
from app.answers.fleet import clocks, coverage
from app.ask import of_store
from data.filters import Selection
from data.store import Store
from data.zones import zone_of

if TYPE_CHECKING:
    from pathlib import Path

BERLIN, UNKNOWN = ZoneInfo("Europe/Berlin"), ZoneInfo("UTC")
BEGIN = datetime(2024, 1, 8, tzinfo=UTC)
HEADER = "JobID|Cluster|State|Submit|Start|End|NNodes|AllocTRES|NodeList"


def files(folder: Path, *, jobs_in: ZoneInfo, lines_in: ZoneInfo) -> tuple[Path, Path]:
    """60 failed jobs over half a year, 20 with a kernel line 4 seconds before the end; local times."""
    jobs, lines = [HEADER], []
    for n in range(60):
        begin = BEGIN + timedelta(hours=71.3 * n)
        end = begin + timedelta(hours=5, minutes=n)
        local = "|".join(
            f"{at.astimezone(jobs_in):%Y-%m-%dT%H:%M:%S}" for at in (begin, begin, end)
        )
        jobs.append(f"{n}|a|FAILED|{local}|1|gres/gpu=8|gpu{n % 7}")
        if n % 3 == 0:
            at = (end - timedelta(seconds=4)).astimezone(lines_in)
            lines.append(f"{at:%Y-%m-%dT%H:%M:%S} GPU{n % 7}.hpc kernel: NVRM: Xid "
                         "(PCI:0000:9b:00): 79, GPU has fallen off the bus.")  # fmt: skip
    paths = folder / "sacct.txt", folder / "kernel.log"
    for path, text in zip(paths, (jobs, lines), strict=True):
        path.write_text("\n".join(text) + "\n", encoding="utf-8")
    return paths


def store_of(
    folder: Path, sacct: Path, kernel: Path, *, sacct_zone: str | None, kernel_zone: str | None
) -> Store:
    root = folder / "store"
    for source, path, zone in (("sacct", sacct, sacct_zone), ("kernel-log", kernel, kernel_zone)):
        alone = source == "kernel-log" and zone is not None
        options = Options(cluster="a", timezone=zone, own_zone=alone)
        ingest_files(root, source, [str(path)], options)
    return Store.open(root)


@pytest.fixture(scope="module")
def local_kernel_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Accounting in UTC, and a kernel log in local time that nobody stated."""
    folder = tmp_path_factory.mktemp("local")
    paths = files(folder, jobs_in=UNKNOWN, lines_in=BERLIN)
    store_of(folder, *paths, sacct_zone="UTC", kernel_zone=None).close()
    return folder / "store"


@pytest.mark.slow
def test_the_zone_of_a_kernel_log_is_found_and_the_correction_mends_it(
    local_kernel_log: Path, tmp_path: Path
) -> None:
    with closing(Store.open(local_kernel_log)) as store:
        (told,) = clocks.notes(clocks.contradictions(store, Selection()))
    assert told.startswith("Kernel log of cluster a lies 2 h 00 min in summer and 1 h 00 min in "
                           "winter after accounting: 20 occasions agree")  # fmt: skip
    assert "then ingest kernel log with --timezone Europe/Berlin (--file-timezone where" in told
    paths = files(tmp_path, jobs_in=UNKNOWN, lines_in=BERLIN)
    mended = store_of(tmp_path, *paths, sacct_zone="UTC", kernel_zone="Europe/Berlin")
    with closing(mended):
        assert clocks.contradictions(mended, Selection()) == []


def test_info_and_the_page_data_say_it(local_kernel_log: Path) -> None:
    with closing(Store.open(local_kernel_log)) as store:
        info, page = (
            coverage.of_store(of_store(store), datetime.now(UTC)),
            coverage.answer(of_store(store), Selection()),
        )
    assert isinstance(info.record, dict)
    rows = info.record["clock_offsets"]
    assert [(row["season"], row["offset_s"], row["suspect"]) for row in rows] == [
        ("summer", 7200.0, "source"), ("winter", 3600.0, "source")]  # fmt: skip
    assert rows[0]["source_timezone"] == "Europe/Berlin"
    (told,) = (note for note in page.notes if "lies" in note)
    assert told in info.notes


def test_accounting_without_a_stated_zone_is_the_suspect(tmp_path: Path) -> None:
    paths = files(tmp_path, jobs_in=BERLIN, lines_in=BERLIN)
    store = store_of(tmp_path, *paths, sacct_zone=None, kernel_zone="Europe/Berlin")
    with closing(store):
        (one,) = clocks.contradictions(store, Selection())
    assert (one.suspect, one.reference_zone) == ("reference", "Europe/Berlin")
    assert "then ingest accounting with --timezone Europe/Berlin" in clocks.correction(one)


def test_the_demo_contradicts_nothing(demo_store: Path) -> None:
    with closing(Store.open(demo_store)) as store:
        assert len(clocks.clocks.compared(store, Selection())) >= 3
        assert clocks.contradictions(store, Selection()) == []


def test_a_zone_is_named_only_where_it_explains_all_times() -> None:
    winter, summer = BEGIN.timestamp(), BEGIN.timestamp() + 180 * 86_400
    assert zone_of("UTC", [(winter, -18_000.0), (summer, -14_400.0)]) == "America/New_York"
    assert zone_of("UTC", [(winter, -18_000.0), (summer, -18_000.0)]) == "Etc/GMT+5"
    assert zone_of("Europe/Berlin", [(winter, -3600.0), (summer, -3600.0)]) == "Europe/London"
    assert zone_of("UTC", [(winter, 3600.0)], ("Africa/Lagos",)) == "Africa/Lagos"
    assert zone_of("UTC", [(winter, 420.0)]) is None
