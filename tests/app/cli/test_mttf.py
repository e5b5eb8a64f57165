"""faultline mttf: the measured rate, the projection of a given one, and every refusal."""

from __future__ import annotations

import csv
import io
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

REFERENCES = Path(__file__).resolve().parents[2] / "references"
ESTIMATE = {"value", "lower", "upper", "conf_level", "n"}
ESTIMATES = ("rate_per_1000_node_days", "incident_rate_per_1000_node_days", "mttf_hours",
             "mean_time_between_failures_hours", "mean_repair_hours", "job_mttf_hours")  # fmt: skip


def reference(name: str) -> list[dict[str, str]]:
    lines = (REFERENCES / name).read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


@pytest.mark.parametrize(
    "row", reference("mttf_projection.csv"), ids=lambda row: f"{row['gpus']} GPUs"
)
def test_a_given_rate_projects_the_published_mttf(
    faultline: Callable[..., Any], row: dict[str, str]
) -> None:
    rate = row["rate_per_1000_node_days"]
    said = faultline("mttf", "--rate-per-1000-node-days", rate, "--gpus", row["gpus"])
    assert (said.code, said.err) == (0, "")
    ((point),) = said.json["projection"]
    assert point["gpus"] == int(row["gpus"])
    expected, tolerance = float(row["mttf_hours"]), float(row["tolerance"])
    assert point["mttf_hours"] == pytest.approx(expected, abs=tolerance)


def test_a_projection_reads_no_store_and_takes_several_sizes(
    faultline: Callable[..., Any], tmp_path: Path
) -> None:
    said = faultline("mttf", "--rate-per-1000-node-days", 6.5, "--gpus", 4, 8, 16,
                     "--gpus-per-node", 4, "--store", tmp_path / "none")  # fmt: skip
    first, second, third = (point["mttf_hours"] for point in said.json["projection"])
    assert first == pytest.approx(24 / 0.0065)
    assert (second, third) == (pytest.approx(first / 2), pytest.approx(first / 4))


def test_a_projection_in_csv_and_as_a_table(faultline: Callable[..., Any]) -> None:
    given = ("mttf", "--rate-per-1000-node-days", 6.5, "--gpus", 16384)
    header, row = csv.reader(io.StringIO(faultline(*given, "--format", "csv").out))
    assert header == ["gpus", "mttf_hours"]
    assert float(row[1]) == pytest.approx(1.803, abs=0.0005)
    assert "1.80" in faultline(*given, "--format", "table").out


def test_the_keys_of_the_contract_are_there(
    faultline: Callable[..., Any], demo_store: Path
) -> None:
    said = faultline("mttf", "--store", demo_store, "--min-gpus", 0)
    found = said.json
    assert said.code == 0
    assert said.err.startswith("synthetic: ")
    assert set(ESTIMATES) <= set(found)
    for name in ESTIMATES:
        assert set(found[name]) == ESTIMATE
    assert isinstance(found["failures"], int)
    assert found["rate_per_1000_node_days"]["value"] == pytest.approx(
        1000 * found["failures"] / found["exposure_node_days"]
    )
    assert found["mttf_hours"]["value"] == pytest.approx(
        24 * found["exposure_node_days"] / found["failures"]
    )
    for size in found["by_size"]:
        assert {"gpus_from", "gpus_to"} < set(size)
        assert set(size["mttf_hours"]) == ESTIMATE
    assert [point["gpus"] for point in found["projection"]] == [2**k for k in range(3, 18)]
    assert set(found["projection"][0]["mttf_hours"]) == ESTIMATE


def test_a_site_toml_at_fault_is_told_though_the_rate_needs_nothing_of_it(
    refused: Callable[..., str], sacct_store: Path, tmp_path: Path
) -> None:
    root = tmp_path / "store"
    shutil.copytree(sacct_store, root)
    (root / "site.toml").write_text("[clusters\n", encoding="utf-8")
    assert "site.toml: is not TOML" in refused("mttf", "--store", root)


@pytest.mark.slow
def test_the_dispersion_test_stands_beside_the_rate(
    faultline: Callable[..., Any], lanl_store: Path
) -> None:
    found = faultline("mttf", "--store", lanl_store, "--cluster", "lanl-20").json
    assert set(found["dispersion"]) == {
        "statistic", "df", "p_value", "widened", "resampled_by",
    }  # fmt: skip
    assert found["dispersion"]["widened"] is True
    assert any("Failures come in clusters" in note for note in found["notes"])


def test_what_is_unknown_is_null(faultline: Callable[..., Any], sacct_store: Path) -> None:
    found = faultline("mttf", "--store", sacct_store, "--min-gpus", 129).json
    assert (found["failures"], found["exposure_node_days"], found["dispersion"]) == (
        None,
        0.0,
        None,
    )
    assert found["rate_per_1000_node_days"] == {
        "value": None, "lower": None, "upper": None, "conf_level": 0.9, "n": 0
    }  # fmt: skip
    assert found["mean_repair_hours"]["value"] is None


def test_real_looking_accounts_are_counted_to_the_digit(
    faultline: Callable[..., Any], sacct_store: Path
) -> None:
    found = faultline("mttf", "--store", sacct_store, "--min-gpus", 0).json
    # 8 GPUs for a day, 16 for two days, 4 from noon of the second day to the last record
    assert found["exposure_node_days"] == 1 + 4 + 0.25
    assert found["failures"] == 1
    assert found["rate_per_1000_node_days"]["value"] == pytest.approx(1000 / 5.25)
    assert [(s["gpus_from"], s["running_hours"], s["failures"]) for s in found["by_size"]] == [
        (2, 24.0 + 12.0, 0),
        (9, 48.0, 1),
    ]


def test_an_explicit_smallest_job_restricts_the_classes_and_the_default_does_not(
    faultline: Callable[..., Any], sacct_store: Path
) -> None:
    def classes(*options: object) -> list[int]:
        found = faultline("mttf", "--store", sacct_store, *options).json
        return [size["gpus_from"] for size in found["by_size"]]

    assert classes() == [2, 9]
    assert classes("--min-gpus", 9) == [9]
    assert classes("--min-gpus", 129) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "exposure", "failures"),
    [
        (("--from", "2026-01-06"), 0 + 2 + 0.25, 1),
        (("--to", "2026-01-06T00:00"), 1 + 2, None),
        (("--from", "2026-01-06T01:00+01:00", "--to", "2026-01-07"), 2.25, None),
        (("--partition", "cpu"), 0.25, None),
        (("--account", "x"), 5.0, 1),
        (("--cluster", "c", "--partition", "gpu", "--account", "x"), 5.0, 1),
    ],
    ids=["from", "to", "both", "partition", "account", "several"],
)
def test_filters_select(
    faultline: Callable[..., Any],
    sacct_store: Path,
    options: Any,
    exposure: float,
    failures: int | None,
) -> None:
    found = faultline("mttf", "--store", sacct_store, "--min-gpus", 0, *options).json
    assert (found["exposure_node_days"], found["failures"]) == (exposure, failures)


@pytest.mark.slow
@pytest.mark.parametrize("row", reference("lanl.csv"), ids=lambda row: row["cluster"])
def test_the_failures_of_los_alamos_have_their_published_means(
    faultline: Callable[..., Any], lanl_store: Path, row: dict[str, str]
) -> None:
    found = faultline("mttf", "--store", lanl_store, "--cluster", row["cluster"]).json
    gap, repair = found["mean_time_between_failures_hours"], found["mean_repair_hours"]
    assert gap["value"] == pytest.approx(float(row["mean_gap_hours"]), abs=0.0005)
    assert gap["lower"] < gap["value"] < gap["upper"]
    assert found["basis"] == "node_failures"
    if row["failures"]:
        assert found["failures"] == gap["n"] == int(row["failures"])
        assert repair["value"] * 60 == pytest.approx(float(row["mean_repair_minutes"]), abs=0.005)


def test_the_nodes_of_los_alamos_are_known_so_there_is_a_rate(
    faultline: Callable[..., Any], lanl_store: Path
) -> None:
    found = faultline("mttf", "--store", lanl_store, "--cluster", "lanl-20",
                      "--from", "2004-01-01", "--to", "2005-01-01").json  # fmt: skip
    assert found["exposure_node_days"] == 512 * 366
    assert found["rate_per_1000_node_days"]["n"] == found["failures"] > 100


def test_csv_holds_every_estimate(faultline: Callable[..., Any], demo_store: Path) -> None:
    given = ("mttf", "--store", demo_store, "--min-gpus", 0)
    rows = list(csv.DictReader(io.StringIO(faultline(*given, "--format", "csv").out)))
    found = faultline(*given, "--format", "json").json
    assert {row["quantity"] for row in rows} == {*ESTIMATES, "by_size", "projection"}
    for row in rows[: len(ESTIMATES)]:
        estimate = found[row["quantity"]]
        for name in ESTIMATE:
            assert row[name] == ("" if estimate[name] is None else str(estimate[name]))
    assert [row["gpus_from"] for row in rows if row["quantity"] == "by_size"] == [
        str(size["gpus_from"]) for size in found["by_size"]
    ]
    assert sum(row["quantity"] == "projection" for row in rows) == 15


def test_a_table_says_value_interval_and_n(
    faultline: Callable[..., Any], sacct_store: Path
) -> None:
    said = faultline("mttf", "--store", sacct_store, "--min-gpus", 0, "--format", "table")
    assert said.code == 0
    lines = [re.split(r"  +", line) for line in said.out.splitlines()]
    assert [
        "Failures per 1,000 node-days",
        "190",
        "(9.77 to 904 (90 %), n = 1; all sizes)",
    ] in lines
    assert ["Mean time to repair", "unknown", "(n = 0)"] in lines


@pytest.mark.slow
def test_another_level_and_seed_are_taken(faultline: Callable[..., Any], lanl_store: Path) -> None:
    given = ("mttf", "--store", lanl_store, "--cluster", "lanl-20")

    def rate(*options: object) -> dict[str, float]:
        return faultline(*given, *options).json["rate_per_1000_node_days"]

    wide, first = rate("--conf-level", 0.99), rate()
    assert wide["conf_level"] == 0.99
    assert wide["lower"] < first["lower"] < first["upper"] < wide["upper"]
    assert rate("--seed", 0) == first


@pytest.mark.slow
@pytest.mark.parametrize("by", ["week", "partition", "rack", "node_age"])
def test_the_groups_add_up_to_the_whole(
    faultline: Callable[..., Any], demo_store: Path, by: str
) -> None:
    found = faultline("mttf", "--store", demo_store, "--min-gpus", 0, "--by", by).json
    groups = found["by"]
    assert sum(group["failures"] for group in groups) == found["failures"]
    exposure = sum(group["exposure_node_days"] for group in groups)
    assert exposure == pytest.approx(found["exposure_node_days"])
    assert all(set(group["rate_per_1000_node_days"]) == ESTIMATE for group in groups)
    assert len({group["group"] for group in groups}) == len(groups)


@pytest.mark.slow
def test_the_rate_by_partition_is_counted_to_the_digit(
    faultline: Callable[..., Any], sacct_store: Path
) -> None:
    given = ("mttf", "--store", sacct_store, "--min-gpus", 0, "--by", "partition")
    groups = {group["group"]: group for group in faultline(*given).json["by"]}
    assert {name: (g["failures"], g["exposure_node_days"]) for name, g in groups.items()} == {
        "gpu": (1, 5.0), "cpu": (0, 0.25),
    }  # fmt: skip
    assert groups["gpu"]["rate_per_1000_node_days"]["value"] == pytest.approx(200.0)
    rows = list(csv.DictReader(io.StringIO(faultline(*given, "--format", "csv").out)))
    rates = {row["group"]: row["rate_per_1000_node_days"] for row in rows}
    assert float(rates["gpu"]) == pytest.approx(200.0)
    assert rates["cpu"] == "", "accounting alone shows no rate of 0"
    table = faultline(*given, "--format", "table").out
    assert "Partition  Failures  Exposure (node-days)  Failures per 1,000 node-days" in table
    assert "by" not in faultline("mttf", "--store", sacct_store).json


@pytest.mark.slow
def test_groups_follow_the_smallest_job_and_the_period(
    faultline: Callable[..., Any], sacct_store: Path
) -> None:
    given = ("mttf", "--store", sacct_store, "--by", "week")
    assert faultline(*given, "--min-gpus", 129).json["by"] == []
    assert faultline(*given).json["by"] == faultline(*given, "--min-gpus", 0).json["by"] != []
    (week,) = faultline(*given, "--min-gpus", 9, "--from", "2026-01-06").json["by"]
    assert (week["failures"], week["exposure_node_days"]) == (1, 2.0)


REFUSED = {
    "no store": (["--store", "nowhere"], "nowhere: holds no store"),
    "a file as store": (["--store", __file__], "is a file: name a folder"),
    "no date": (["--from", "yesterday"], "'yesterday' is no ISO time"),
    "a date beyond all": (["--to", "0001-01-01T00:00+05:00"], "is no ISO time"),
    "a period backwards": (["--from", "2026-02-01", "--to", "2026-01-01"], "must be before --to"),
    "an empty period": (["--from", "2026-02-01", "--to", "2026-02-01"], "must be before --to"),
    "an unknown cluster": (["--cluster", "d"], "--cluster must be one of the store's, got 'd': th"),
    "a slip": (["--partition", "gpus"], "got 'gpus': did you mean 'gpu'?"),
    "an unknown account": (["--account", "none of us"], "there is x, y"),
    "a level in percent": (["--conf-level", "90"], "pass 0.9 for 90 %"),
    "no level": (["--conf-level", "high"], "invalid float value"),
    "a negative size": (["--min-gpus", "-1"], "no whole number from 0 to"),
    "a negative seed": (["--seed", "-1"], "no whole number from 0 to"),
    "a job of no GPUs": (["--gpus", "0"], "gpus must be a finite number > 0, got 0"),
    "a job of endless GPUs": (["--gpus", "1" + "0" * 400], "gpus must be a finite number > 0"),
    "a rate without sizes": (["--rate-per-1000-node-days", "6.5"], "--gpus must be given"),
    "a negative rate": (["--rate-per-1000-node-days=-1", "--gpus", "8"], "number >= 0, got -1"),
    "no rate": (["--rate-per-1000-node-days", "nan", "--gpus", "8"], "number >= 0, got nan"),
    "a node of no GPUs": (
        ["--rate-per-1000-node-days", "6.5", "--gpus", "8", "--gpus-per-node", "0"],
        "gpus_per_node must be a finite number > 0, got 0",
    ),
    "the GPUs of a store's node": (["--gpus-per-node", "4"], "a store knows its own"),
    "groups of a given rate": (
        ["--rate-per-1000-node-days", "6.5", "--gpus", "8", "--by", "week"],
        "--by tells records of a store apart",
    ),
    "an unknown grouping": (["--by", "moon"], "invalid choice: 'moon'"),
    "an unknown form": (["--format", "xml"], "invalid choice: 'xml'"),
    "an unknown option": (["--node", "n1\nn2"], "unrecognized arguments: --node n1 n2"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_answered_is_refused_in_one_line(
    refused: Callable[..., str], sacct_store: Path, case: tuple[list[str], str]
) -> None:
    options, message = case
    store = [] if "--store" in options else ["--store", sacct_store]
    assert message in refused("mttf", *store, *options)


@pytest.mark.slow
def test_a_definition_is_named_and_the_table_holds_all(
    faultline: Callable[..., Any], demo_store: Path
) -> None:
    asked = ("mttf", "--store", demo_store, "--min-gpus", 0)
    rates = {}
    for name in ("infrastructure", "paper", "hardware", "scheduler"):
        said = faultline(*asked, "--definition", name).json
        assert said["definition"] == name
        rates[name] = (said["failures"], said["rate_per_1000_node_days"])
    *named, last = said["sensitivity"]
    table = {row["definition"]: (row["failures"], row["rate_per_1000_node_days"]) for row in named}
    assert table == rates
    assert last["definition"] == "infrastructure_and_unknowns"
    for estimate in (last["rate_per_1000_node_days"], last["probability"]):
        assert set(estimate) - {"basis"} == ESTIMATE
    assert rates["infrastructure"][0] >= rates["hardware"][0] >= rates["scheduler"][0]
    assert rates["hardware"][0] > 0


def test_incidents_and_failures_say_their_definition(
    faultline: Callable[..., Any], demo_store: Path
) -> None:
    summary = faultline("incidents", "--store", demo_store, "--summary").json
    (first,) = faultline("incidents", "--store", demo_store, "--limit", 1).json
    failures = faultline("failures", "--store", demo_store).json
    assert {said["definition"] for said in (summary, first, failures)} == {"infrastructure"}
