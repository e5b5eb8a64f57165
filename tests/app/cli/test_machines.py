"""faultline machines: long and wide files, Prometheus JSON, and what is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.errors import DataError, SourceError
from data.ingest.readers.metrics.machine_samples import read_samples
from data.machine_settings import read_settings

if TYPE_CHECKING:
    from pathlib import Path

POWER = np.array([[500.0, 510.0, 490.0, 505.0]] * 300) + np.arange(300)[:, None] % 7


def test_each_form_gives_the_same_samples(tmp_path: Path) -> None:
    long = ["node,metric,at,value"] + [
        f"n{k},power,{1_700_000_000 + t},{POWER[t, k]}" for t in range(300) for k in range(4)
    ]
    wide = ["at,node,power"] + [
        f"{1_700_000_000_000 + 1000 * t},n{k},{POWER[t, k]}" for t in range(300) for k in range(4)
    ]
    result = [
        {
            "metric": {"__name__": "power", "instance": f"n{k}:9400"},
            "values": [[1_700_000_000 + t, str(POWER[t, k])] for t in range(300)],
        }
        for k in range(4)
    ]
    at = 1_700_000_000 + np.arange(300)
    columns = {"time": pa.array(at * 10**6, pa.timestamp("us", "UTC"))}
    pq.write_table(
        pa.table(columns | {f"n{k}": POWER[:, k] for k in range(4)}), tmp_path / "power.parquet"
    )
    rows = {
        "observed_at": np.tile(at, 4),
        "hostname": np.repeat([f"n{k}" for k in range(4)], 300),
        "metric": ["power"] * 1200,
        "value": POWER.T.ravel(),
    }
    pq.write_table(pa.table(rows), tmp_path / "long.parquet")
    files = {
        "long.csv": "\n".join(long),
        "wide.csv": "\n".join(wide),
        "p.json": json.dumps(
            {"status": "success", "data": {"resultType": "matrix", "result": result}}
        ),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    for name in (*files, "power.parquet", "long.parquet"):
        path = tmp_path / name
        samples = read_samples([str(path)])
        assert samples.machines == ("n0", "n1", "n2", "n3")
        assert (samples.start_at, samples.step_seconds) == (1_700_000_000, 1)
        np.testing.assert_allclose(samples.values["power"], POWER)


def test_a_file_without_times_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("node,power\na,1\n")
    with pytest.raises(SourceError, match="has no column of times"):
        read_samples([str(path)])


def samples_of(path: Path, *, faulty: bool) -> str:
    """Ten minutes of six machines' power and CPU; one of them may lose power after five."""
    rng = np.random.default_rng(5)
    rows = ["at,node,power,cpu"]
    for t in range(600):
        for k in range(6):
            lost = 200 * (faulty and k == 2 and t >= 300)
            rows.append(f"{t},n{k},{500 + 9 * rng.normal() - lost:.1f},{20 + rng.normal():.2f}")
    path.write_text("\n".join(rows))
    return str(path)


def test_verdicts_and_settings_that_are_learnt(faultline: Any, tmp_path: Path) -> None:
    healthy = samples_of(tmp_path / "healthy.csv", faulty=False)
    faulty = samples_of(tmp_path / "faulty.csv", faulty=True)
    said = faultline("machines", healthy, "--format", "json").json
    assert (said["verdict"], said["machine"], said["since_at"]) == ("none", None, None)
    said = faultline("machines", faulty, "--format", "json").json
    assert (said["verdict"], said["machine"], said["metric"]) == ("faulty", "n2", "power")
    assert said["since_at"][:18] in ("1970-01-01T00:04:5", "1970-01-01T00:05:0")
    assert [each["machine"] for each in said["faulty"]] == ["n2"]
    site = str(tmp_path / "site.json")
    assert faultline("machines", healthy, "--learn", site).code == 0
    assert json.loads((tmp_path / "site.json").read_text())["threshold"] >= 4.0
    (tmp_path / "high.json").write_text(json.dumps({"threshold": 1e6}))
    high = ("--settings", str(tmp_path / "high.json"), "--format", "json")
    assert faultline("machines", faulty, *high).json["verdict"] == "none"
    header, *lines = (tmp_path / "healthy.csv").read_text().splitlines()
    told = [line if "n0" in line or "n1" in line else line[: line.index("n") + 2] + ",,"
            for line in lines]  # fmt: skip
    (tmp_path / "two.csv").write_text("\n".join([header, *told]))
    said = faultline("machines", str(tmp_path / "two.csv"), "--format", "json").json
    assert (said["verdict"], said["n_judged"]) == ("unknown", 0)
    said = faultline("machines", str(tmp_path / "two.csv"), "--format", "table")
    assert "Cannot be judged: 0 machines" in said.out
    role = ("--role", "spare=n2", "--format", "json")
    (told,) = faultline("machines", faulty, *role).json["told"]
    assert (told["machine"], told["kind"]) == ("n2", "alone")
    said = faultline("machines", faulty, "--role", "spare=x*")
    assert (said.code, "no machine is called x*" in said.err) == (2, True)
    assert faultline("machines", faulty, "--role", "spare").code == 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "is no file of settings"),
        ('{"level": 3}', "must be an object of apart_ratio"),
        ('{"threshold": true}', "threshold must be a number above 0, got True"),
        ('{"order": ["power"]}', "write one with --learn"),
    ],
)
def test_settings_that_are_none_are_refused(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "site.json"
    path.write_text(text)
    with pytest.raises(DataError, match=reason):
        read_settings(str(path))


def test_the_last_samples_of_the_store_are_judged(faultline: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    lines = [
        f'DCGM_FI_DEV_POWER_USAGE{{gpu="{gpu}",Hostname="n{k}"}} '
        f"{500 + 9 * rng.normal() - 200 * (k == 2 and t >= 600):.1f} {1_700_000_000 + t}000"
        for t in range(0, 1200, 5) for k in range(5) for gpu in range(2)
    ]  # fmt: skip
    (tmp_path / "dcgm.txt").write_text("\n".join(lines))
    store = ("--store", str(tmp_path / "store"))
    assert faultline("machines", *store).code == 2
    assert faultline("ingest", "dcgm", str(tmp_path / "dcgm.txt"), *store).code == 0
    said = faultline("machines", *store, "--format", "json").json
    assert (said["verdict"], said["machine"], said["step_seconds"]) == ("faulty", "n2", 5)
    assert "Samples are 5 s apart" in faultline("machines", *store).err
    said = faultline("machines", *store, "--job", "7")
    assert (said.code, "no metrics of the nodes of job 7" in said.err) == (2, True)
