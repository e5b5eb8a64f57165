"""The heat map of machines: the faulty one on top, gaps where nothing is known, since when."""

from __future__ import annotations

import numpy as np

from analytics.nodes.machines.detection import Detection, Faulty, heat_map
from analytics.nodes.machines.samples import Samples
from app.figures.nodes import machine_heat_map


def test_the_faulty_machine_stands_on_top_and_what_is_unknown_is_a_gap() -> None:
    power = np.full((360, 60), 500.0)
    power[:, 7] = 100.0
    power[:4, 7] = np.nan
    names = tuple(f"n{k}" for k in range(60))
    samples = Samples(names, 1_700_000_000.0, 1.0, {"power": power})
    shown = heat_map(samples, Detection((Faulty("n7", "power", 1_700_000_010.0, ("power",), 9.0),)))
    assert (shown.machines[0], shown.values.shape, shown.n_machines) == ("n7", (40, 180), 60)
    drawn = machine_heat_map.figure(shown, timezone="Asia/Tokyo").to_dict()
    (cells,) = drawn["data"]
    assert cells["z"][0][:3] == [None, None, 100.0]
    assert str(cells["x"][0]) == "2023-11-15T07:13:20.000000000"
    assert str(drawn["layout"]["shapes"][0]["x0"]).startswith("2023-11-15 07:13:30")
    frame = machine_heat_map.frame(shown)
    assert (len(frame), frame["power"].isna().sum()) == (40 * 180, 2)
