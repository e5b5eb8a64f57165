"""Repeated observations of one thing are one burst, until it falls silent."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.errors import ShapeError
from analytics.failures.bursts import burst_numbers, bursts

START = pd.Timestamp("2026-01-01", tz="UTC")


def events(*rows: dict) -> pd.DataFrame:
    found = []
    for number, row in enumerate(rows):
        base = {"cluster": "c", "event_id": f"e{number:03d}", "node": "n", "gpu": None}
        base |= {"check_name": "xid", "severity": "warning", "xid": 79, "sxid": None}
        at = row.pop("at", 0)
        base["observed_at"] = None if at is None else START + pd.Timedelta(seconds=at)
        found.append(base | row)
    columns = ["cluster", "event_id", "node", "gpu", "check_name", "severity", "xid", "sxid"]
    return pd.DataFrame(found, columns=[*columns, "observed_at"])


def test_three_minutes_of_silence_end_a_burst_and_a_second_less_does_not() -> None:
    found = bursts(events({"at": 0}, {"at": 180}, {"at": 361}))
    assert found["n"].tolist() == [2, 1]
    assert found["burst_id"].tolist() == ["e000", "e002"]
    assert found["last_at"].iloc[0] == START + pd.Timedelta(minutes=3)


def test_a_burst_may_last_long_while_its_gaps_are_short() -> None:
    found = bursts(events(*({"at": 120 * k} for k in range(100))))
    assert found["n"].tolist() == [100]


@pytest.mark.parametrize(
    "other",
    [{"node": "m"}, {"cluster": "d"}, {"gpu": "3"}, {"check_name": "ib"}, {"xid": 48}, {"sxid": 1}],
)
def test_another_node_gpu_check_or_code_is_another_burst(other: dict) -> None:
    assert len(bursts(events({}, {"at": 1} | other))) == 2


def test_events_without_time_or_node_form_no_burst() -> None:
    table = events({}, {"at": None}, {"node": None})
    assert bursts(table)["n"].tolist() == [1]
    assert burst_numbers(table).tolist() == [0, -1, -1]


def test_the_worst_severity_counts_from_when_it_was_seen() -> None:
    rows = ({"severity": None}, {"at": 5, "severity": "fatal"}, {"at": 9, "severity": "critical"})
    found = bursts(events(*rows))
    assert found["severity"].tolist() == ["fatal"]
    assert found["worst_at"].tolist() == [START + pd.Timedelta(seconds=5)]


def test_a_burst_of_unknown_severity_stays_unknown() -> None:
    assert bursts(events({"severity": None}))["severity"].tolist() == [None]


def test_no_events_are_no_bursts() -> None:
    found = bursts(events())
    assert found.empty
    assert {"burst_id", "first_at", "last_at", "n", "severity"} <= set(found.columns)


@given(
    st.lists(st.tuples(st.integers(0, 2000), st.sampled_from("ab")), max_size=30),
    st.integers(0, 99),
)
def test_bursts_hold_each_event_once_and_do_not_depend_on_the_order(rows: list, seed: int) -> None:
    table = events(*({"at": at, "node": node} for at, node in rows))
    found = bursts(table)
    assert found["n"].sum() == len(rows)
    again = bursts(table.sample(frac=1, random_state=seed))
    pd.testing.assert_frame_equal(found, again)
    for _, mine in found.groupby("node"):
        gaps = mine["first_at"].iloc[1:].array - mine["last_at"].iloc[:-1].array
        assert (gaps > pd.Timedelta(minutes=3)).all()


def test_a_missing_column_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"events must have the columns .* none named node"):
        bursts(events().drop(columns="node"))


@pytest.mark.benchmark
def test_half_a_million_events_take_well_under_two_seconds_of_processor_time() -> None:
    rng, n = np.random.default_rng(0), 500_000
    table = pd.DataFrame(
        {
            "cluster": "c",
            "event_id": [f"{k:016x}" for k in rng.permutation(n)],
            "node": rng.integers(0, 2000, n).astype(str),
            "gpu": None,
            "observed_at": START + pd.to_timedelta(rng.uniform(0, 3e7, n), unit="s"),
            "check_name": rng.choice(["xid", "ib", "pci"], n),
            "severity": rng.choice(["info", "warning", "critical"], n),
        }
    )
    begun = time.process_time()
    assert len(bursts(table)) > 0.9 * n
    assert time.process_time() - begun < 2
