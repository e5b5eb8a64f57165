"""faultline lemons: a small cluster by hand, a failure log of the public record, the demo."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from app.actions import Options, ingest_files
from tests.app.cli.conftest import SHARED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LANL = SHARED / "lanl" / "LA-UR-05-7318-failure-data-1996-2005.csv"
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
HEADER = "JobID|Cluster|User|State|Submit|Start|End|NNodes|AllocTRES|NodeList|FailedNode|SubmitLine"
EVENTS = "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User"
BAD = "n07"


def at(days: float) -> str:
    return f"{BEGIN + timedelta(days=days):%Y-%m-%dT%H:%M:%S}"


def job(number: int, node: str, day: float, state: str = "COMPLETED", line: str = "x.sh",
        user: str = "", ran: float = 0.8) -> str:  # fmt: skip
    lost = node if state == "NODE_FAIL" else ""
    return (
        f"{number}|c|{user or f'ada{number % 5}'}|{state}|{at(day)}|{at(day)}|{at(day + ran)}|1|"
        f"gres/gpu=8|{node}|{lost}|sbatch {line}"
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty nodes with a job a day for 30 days; n07, now and then N07, fails every fourth day.

    n05 is planned out of service every other day; login1 has outages alone; n40 and n41 are listed
    and hold no job; n35 and n36 go down within six seconds; jobs that eve pins to n30 lose it.
    """
    folder = tmp_path_factory.mktemp("lemons")
    jobs, n = [HEADER], 0
    for day in range(30):
        for node in range(1, 39):
            n += 1
            name = "N07" if node == 7 and day % 8 == 3 else f"n{node:02d}"
            state = "NODE_FAIL" if node == 7 and day % 4 == 3 else "COMPLETED"
            jobs.append(job(n, name, day, state, "--exclude=n07 x.sh" if n % 300 == 1 else "x.sh"))
    jobs.append(job(9000, "n[39]", -40))
    jobs += [job(9001 + k, "n30", day + 0.81, "NODE_FAIL", user="eve", ran=0.1)
             for k, day in enumerate((2, 5, 11, 14, 20, 25))]  # fmt: skip
    together = [(node, day + k * 5 / 86_400) for day in (4.31, 9.87, 16.02, 21.66)
                for k, node in enumerate(("n35", "n36"))]  # fmt: skip
    events = [
        EVENTS,
        *(f"c|n05|{at(day)}|{at(day + 0.1)}|DRAIN|planned maintenance|root" for day in range(2, 29, 2)),
        *(f"c|login1|{at(day)}|{at(day + 0.1)}|DOWN|Not responding|slurm" for day in range(3, 29, 3)),
        *(f"c|n07|{at(day + 0.8)}|{at(day + 0.9)}|DOWN|Not responding|slurm" for day in range(3, 29, 8)),
        *(f"c|{node}|{at(day)}|{at(day + 0.05)}|DOWN|Not responding|slurm" for node, day in together),
    ]  # fmt: skip
    (folder / "sacct.txt").write_text("\n".join(jobs) + "\n")
    (folder / "events.txt").write_text("\n".join(events) + "\n")
    listed = "".join(
        f"NodeName=n{node} Arch=x86_64 CPUTot=96 Gres=gpu:8 State=IDLE Partitions=gpu\n\n"
        for node in (40, 41)
    )
    (folder / "nodes.txt").write_text(listed)
    for source, name, options in (
        ("sacct", "sacct.txt", Options()),
        ("sacctmgr-events", "events.txt", Options()),
        ("scontrol-nodes", "nodes.txt", Options(cluster="c", at=BEGIN)),
    ):
        _, errors = ingest_files(folder / "store", source, [str(folder / name)], options)
        assert not errors
    return folder / "store"


def test_the_lemon_comes_first_with_reasons_a_ticket_and_the_line_that_drains(
    faultline: Any, site: Path
) -> None:
    rows = faultline("lemons", "--store", site, "--format", "json").json
    first = rows[0]
    assert (first["node"], first["verdict"]) == (BAD, "lemon")
    assert [row["node"] for row in rows if row["verdict"] == "lemon"] == [BAD]
    assert set(first["ratio"]) == {"value", "lower", "upper", "conf_level", "n"}
    assert first["ratio"]["n"] == 7
    assert first["ratio"]["lower"] > 2
    assert first["signals"]["single_node_node_fails"] == 7
    assert first["signals"]["out_count"] == 4
    assert first["signals"]["excl_jobid_count"] == 3
    assert first["signals"]["xid_cnt"] is None  # nothing tells of health
    assert "7 failed jobs" in "; ".join(first["reasons"])
    assert first["command"].startswith(f"scontrol update NodeName={BAD} State=DRAIN Reason=")
    assert f"Node {BAD} of cluster c: lemon" in first["ticket"]
    assert first["saved_gpu_hours"]["lower"] <= first["saved_gpu_hours"]["value"]


@pytest.mark.slow
def test_a_lemon_that_is_out_is_kept_out(faultline: Any, site: Path, tmp_path: Path) -> None:
    root = shutil.copytree(site, tmp_path / "store")
    drained = f"{EVENTS}\nc|N07|{at(29.5)}|Unknown|DRAIN|check-ib|root\n"  # its own spelling
    (tmp_path / "drained.txt").write_text(drained)
    ingest_files(root, "sacctmgr-events", [str(tmp_path / "drained.txt")], Options())
    rows = {row["node"]: row for row in faultline("lemons", "--store", root).json}
    assert (rows[BAD]["is_out"], rows["n01"]["is_out"]) == (True, False)
    assert rows[BAD]["action"].startswith("Keep it out of service; ")
    words = faultline("lemons", "--store", root, "--format", "table").out
    assert words.startswith(f"Keep {BAD} out of service: 1 of 38 nodes")
    listed = faultline("actions", "--store", root).json["actions"]
    assert f"Keep {BAD} out" in [row["what"] for row in listed]
    before = faultline("lemons", "--store", root, "--to", at(29.4)).json[0]
    assert (before["node"], before["is_out"]) == (BAD, False)


@pytest.mark.slow
def test_whether_a_lemon_is_out_is_not_known_where_no_record_tells(
    faultline: Any, site: Path, tmp_path: Path
) -> None:
    root = tmp_path / "store"
    ingest_files(root, "sacct", [str(site.parent / "sacct.txt")], Options())
    first = faultline("lemons", "--store", root).json[0]
    assert (first["node"], first["is_out"]) == (BAD, None)
    assert first["action"].startswith("Drain")


def test_what_two_nodes_share_and_what_one_user_does_is_said_and_drains_none(
    faultline: Any, site: Path
) -> None:
    rows = {row["node"]: row for row in faultline("lemons", "--store", site).json}
    assert {rows[node]["verdict"] for node in ("n30", "n35", "n36")} == {"watch"}
    said = "went down together with n36 within 6 s, 4 of 4 times: a shared fault, not the node"
    assert said in rows["n35"]["reasons"]
    assert "what these nodes share" in rows["n35"]["action"]
    (doubt,) = (reason for reason in rows["n30"]["reasons"] if "one user" in reason)
    assert doubt.startswith("6 of 6 occasions with failed jobs are of one user, where others' jobs")
    assert "run another user's job" in rows["n30"]["action"]
    assert rows["n30"]["command"] is None


def test_maintenance_is_no_failure_a_front_end_no_lemon_and_silence_not_fine(
    faultline: Any, site: Path
) -> None:
    rows = {row["node"]: row for row in faultline("lemons", "--store", site).json}
    assert (rows["n05"]["verdict"], rows["n05"]["signals"]["out_count"]) == ("fine", 0)
    assert rows["login1"]["verdict"] == "front end"
    assert "n39" not in rows or rows["n39"]["verdict"] == "unknown"
    assert (rows["n40"]["verdict"], rows["n40"]["score"]) == ("unknown", None)
    assert rows["n01"]["verdict"] == "fine"


@pytest.mark.slow
def test_words_sheet_and_summary_tell_the_same(faultline: Any, site: Path) -> None:
    words = faultline("lemons", "--store", site, "--format", "table")
    assert words.out.startswith(f"Drain {BAD}: 1 of 38 nodes judged by 28 days is a lemon.")
    assert "no repair tickets and no health events" in words.err
    sheet = faultline("lemons", "--store", site, "--format", "csv").out.splitlines()
    assert sheet[1].startswith(f"c,{BAD},lemon,")
    told = faultline("lemons", "--store", site, "--summary").json
    (cluster,) = told["clusters"]
    assert cluster["without_lemons"]["failures"] == 13
    assert [fault["nodes"] for fault in cluster["shared_faults"]] == [["n35", "n36"]]
    assert 6 < cluster["without_lemons"]["avoided"]["value"] < 7
    assert told["back_tests"][0]["n_listed"] == 0
    hidden = faultline("lemons", "--store", site, "--redact", "--format", "json")
    assert (hidden.code, hidden.json[0]["node"], "ada" in hidden.out) == (0, BAD, False)


def test_days_and_times_out_of_range_are_refused(refused: Callable[..., str], site: Path) -> None:
    assert "above 0" in refused("lemons", "--store", site, "--days", "0")
    assert "above 0" in refused("lemons", "--store", site, "--days", "nan")


def test_a_short_period_and_one_of_nothing_say_so(faultline: Any, site: Path) -> None:
    quiet = faultline("lemons", "--store", site, "--to", "2025-06-01", "--format", "table")
    assert quiet.code == 0
    assert quiet.out.startswith("Which nodes are lemons cannot be judged: ")
    assert "do not reach this time" in quiet.out
    week = faultline("lemons", "--store", site, "--from", "2026-01-20", "--format", "json")
    assert BAD in {row["node"] for row in week.json}


@pytest.mark.slow
@pytest.mark.skipif(not LANL.exists(), reason="needs ../shared/data/lanl")
def test_node_0_of_lanl_20_is_a_probable_front_end(faultline: Any, tmp_path: Path) -> None:
    ingest_files(tmp_path, "failure-log", [str(LANL)], Options(mapping="lanl"))
    said = faultline(
        "lemons", "--store", tmp_path, "--cluster", "lanl-20", "--days", 4000, "--format", "json"
    )
    rows = {row["node"]: row for row in said.json}
    assert rows["0"]["verdict"] == "front end"
    assert rows["0"]["signals"]["out_count"] >= 100
    assert "probably the front end" in rows["0"]["reasons"][0]


@pytest.mark.slow
def test_the_level_of_the_intervals_moves_no_verdict(
    faultline: Callable[..., Any], tmp_path: Path
) -> None:
    assert faultline("demo", "--store", str(tmp_path / "demo")).code == 0
    asked = ("lemons", "--store", str(tmp_path / "demo"), "--format", "json", "--conf-level")
    usual, wide = (
        {row["node"]: row["verdict"] for row in faultline(*asked, level).json}
        for level in ("0.9", "0.999")
    )
    assert {"lemon", "watch"} <= set(usual.values())
    assert usual == wide
