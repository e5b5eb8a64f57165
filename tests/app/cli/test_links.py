"""faultline links and validate-plan: verdicts in JSON, tables and sheets, and what is refused."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def delays(slow: Callable[[int, int], bool]) -> str:
    rng = np.random.default_rng(5)
    rows = [
        f"n{a},n{b},{20 * rng.lognormal(0, 0.03) * (3 if slow(a, b) else 1):.3f}"
        for a in range(8) for b in range(8) if a != b for _ in range(4)
    ]  # fmt: skip
    return "\n".join(["source,destination,delay_us", *rows]) + "\n"


@pytest.mark.parametrize(
    ("slow", "verdict", "source", "destination", "hosts"),
    [
        (lambda a, b: (a, b) == (2, 5), "link", "n2", "n5", ["n2", "n5"]),
        (lambda a, b: a == 2, "sender", "n2", None, ["n2"]),
        (lambda a, b: b == 5, "receiver", None, "n5", ["n5"]),
        (lambda a, b: (a in (2, 3)) != (b in (2, 3)), "group", None, None, ["n2", "n3"]),
        (lambda a, b: False, "none", None, None, []),
    ],
    ids=["link", "sender", "receiver", "group", "none"],
)
def test_verdicts(
    faultline: Any,
    tmp_path: Path,
    slow: Any,
    verdict: str,
    source: str | None,
    destination: str | None,
    hosts: list[str],
) -> None:
    (tmp_path / "delays.csv").write_text(delays(slow))
    said = faultline("links", str(tmp_path / "delays.csv"), "--format", "json")
    found = said.json
    assert (said.code, found["verdict"], found["source"], found["destination"], found["hosts"]) == (
        0,
        verdict,
        source,
        destination,
        hosts,
    )
    if verdict == "none":
        assert found["ratio"] is None
        assert 1.2 <= found["end_named_from_ratio"] < 2
    else:
        assert found["ratio"]["lower"] < 3 < found["ratio"]["upper"] * 1.05
        assert set(found["ratio"]) == {"value", "lower", "upper", "conf_level", "n"}


def test_words_and_sheet_tell_the_same(faultline: Any, tmp_path: Path) -> None:
    (tmp_path / "delays.csv").write_text(delays(lambda a, b: a == 2) + "n1,n2,broken\n")
    words = faultline("links", str(tmp_path / "delays.csv"), "--format", "table")
    assert words.out.startswith("Sender n2 is slow: ")
    assert "1 row or cell left out, the first of line 226" in words.err
    sheet = faultline("links", str(tmp_path / "delays.csv"), "--format", "csv").out.splitlines()
    assert (sheet[0], len(sheet), sheet[1].startswith("n2,")) == (
        "source,destination,ratio,samples",
        57,
        True,
    )


def test_what_cannot_be_read_is_one_line(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "no such file" in refused("links", str(tmp_path / "none.csv"))
    (tmp_path / "delays.csv").write_text("source,destination,delay\na,b,1\n")
    assert "name that column delay_us" in refused("links", str(tmp_path / "delays.csv"))


def test_results_alone_are_judged_without_a_store(faultline: Any, tmp_path: Path) -> None:
    lines = [
        {"node": f"n{at}", "mem-bw/h2d_bw:0": 26.0 if at != 3 else 20.0, "mem-bw/h2d_bw:1": 26.1}
        for at in range(12)
    ]
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    said = faultline(
        "validate-plan",
        str(tmp_path / "results.jsonl"),
        "--store",
        str(tmp_path / "none"),
        "--format",
        "json",
    )
    assert (said.code, said.json["regressed"]) == (0, ["n3"])
    (found,) = said.json["regressions"]
    assert (found["metric"], found["better"], found["ratio"]["n"]) == ("mem-bw/h2d_bw", "higher", 2)


def test_the_plan_of_the_demo(faultline: Any, demo_store: Path, tmp_path: Path) -> None:
    said = faultline("validate-plan", "--store", str(demo_store), "--format", "json")
    plan = said.json["plan"]
    assert (said.code, said.json["synthetic"], len(plan) > 10) == (0, True, True)
    assert said.json["n_incidents"] == sum(row["n_incidents"] for row in plan) > 0
    assert [row["net_gpu_hours"] for row in plan] == sorted(
        (row["net_gpu_hours"] for row in plan), reverse=True
    )
    assert plan[0]["n_incidents"] >= 1
    last = plan[-1]["node"]
    lines = [
        {"node": row["node"], "mem-bw/h2d_bw:0": 20.0 if row["node"] == last else 26.0}
        for row in plan
    ]
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    first = faultline(
        "validate-plan",
        str(tmp_path / "results.jsonl"),
        "--store",
        str(demo_store),
        "--format",
        "json",
    ).json["plan"][0]
    assert (first["node"], first["regressed"]) == (last, True)


def test_a_test_that_nobody_knows_is_refused(refused: Callable[..., str], demo_store: Path) -> None:
    assert "there are ib-loopback" in refused(
        "validate-plan", "--store", str(demo_store), "--minutes", "golf=3"
    )
    assert "must be TEST=MINUTES" in refused("validate-plan", "--minutes", "golf")


def test_a_plan_without_an_incident_is_unknown_and_not_that_nothing_is_worth_a_test(
    faultline: Callable[..., Any], sacct_store: Path, tmp_path: Path
) -> None:
    shutil.copytree(sacct_store, tmp_path / "store")  # the command builds the ledger
    said = faultline("validate-plan", "--store", tmp_path / "store", "--format", "table").out
    assert said.startswith("Which nodes are worth the time of a test cannot be judged: no failure")
    for name in (
        "Nodes worth testing",
        "GPU-hours at stake",
        "Incidents of nodes per 1,000 node-days",
    ):
        assert re.search(rf"^{name} +unknown ", said, re.MULTILINE), name


def test_a_plan_of_a_kernel_log_alone_knows_no_rate(
    faultline: Callable[..., Any], tmp_path: Path
) -> None:
    log = tmp_path / "kernel.txt"
    log.write_text(
        "2026-01-05T10:00:00+00:00 n1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off "
        "the bus.\n"
    )
    faultline("ingest", "kernel-log", log, "--store", tmp_path / "store")
    found = faultline("validate-plan", "--store", tmp_path / "store", "--format", "json").json
    assert (found["n_incidents"], found["rate_per_1000_node_days"], found["plan"]) == (1, None, [])
    said = faultline("validate-plan", "--store", tmp_path / "store", "--format", "table").out
    assert "is not known: no job of the selection names its nodes." in said
