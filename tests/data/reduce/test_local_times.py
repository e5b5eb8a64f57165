"""Local times are reduced as the readers of a store read them, in an hour that comes twice, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.data.reduce.local_times import LOCAL, ZONE, ZONED, instants, tables
from tests.data.reduce.samples import content, reduced

MINUTE_US = 60_000_000


def begun(out: Path) -> list[int]:
    """When the bursts of a reduction began."""
    return sorted(row[11] for row in content(out, "bursts"))


@pytest.mark.slow
def test_local_times_of_tables_are_read_as_a_store_reads_them(tmp_path: Path) -> None:
    for number, (path, times) in enumerate(tables(tmp_path / "given").items()):
        stated = {"timezone": ZONE} if times != [f"{each}Z" for each in LOCAL] else {}
        n_local = sum(each in LOCAL for each in times)
        events, metrics = tmp_path / f"events-{number}", tmp_path / f"metrics-{number}"
        result = reduced(events, path, kind="events", **stated)
        assert [one.local for one in result.manifest.inputs.values()] == [n_local], path
        assert begun(events) == instants(times), path
        reduced(metrics, path, **stated)
        minutes = {each // MINUTE_US * MINUTE_US for each in instants(times)}
        assert {row[5] for row in content(metrics, "minutes")} == minutes, path


def test_a_table_and_a_log_of_an_hour_that_comes_twice_are_of_one_time(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "\n".join(["host,time,xid,message", *(f"n1,{at},79,fell off" for at in LOCAL + ZONED)])
    )
    said = "n1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, fell off"
    (tmp_path / "kern.log").write_text("\n".join(f"{at} {said}" for at in LOCAL + ZONED) + "\n")
    for name in ("a.csv", "kern.log"):
        reduced(tmp_path / f"{name}.out", tmp_path / name, kind="events", timezone=ZONE)
        assert begun(tmp_path / f"{name}.out") == instants(LOCAL + ZONED)
