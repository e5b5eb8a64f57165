"""faultline machines: long and wide files, Prometheus JSON, and what is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from data.errors import SourceError
from data.ingest.machine_samples import read_samples

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
    files = {
        "long.csv": "\n".join(long),
        "wide.csv": "\n".join(wide),
        "p.json": json.dumps(
            {"status": "success", "data": {"resultType": "matrix", "result": result}}
        ),
    }
    for name, text in files.items():
        path = tmp_path / name
        path.write_text(text)
        samples = read_samples([str(path)])
        assert samples.machines == ("n0", "n1", "n2", "n3")
        assert (samples.start_at, samples.step_seconds) == (1_700_000_000, 1)
        np.testing.assert_allclose(samples.values["power"], POWER)


def test_a_file_without_times_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("node,power\na,1\n")
    with pytest.raises(SourceError, match="has no column of times"):
        read_samples([str(path)])
