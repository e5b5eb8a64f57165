"""Answers of Prometheus: published ones, both kinds of result, and broken ones."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from data.errors import SourceError
from data.ingest.reader import RecordError, Source
from data.ingest.readers.metrics.prometheus_json import (
    NO_METRIC,
    NO_SERIES,
    AnsweredSeries,
    answered,
)
from data.limits import DEFAULTS

REAL = Path(__file__).parents[4] / "shared" / "data" / "collect" / "metrics" / "grafana"
needs_files = pytest.mark.skipif(not REAL.exists(), reason="no ../shared/data/collect here")
AT = 1_700_000_000
TEMPERATURE = {"__name__": "DCGM_FI_DEV_GPU_TEMP", "gpu": "0", "instance": "n1:9400"}


def read(path: Path) -> list[AnsweredSeries | str]:
    source = Source(path, path.name, datetime(2026, 1, 1, tzinfo=UTC))
    return [str(one) if isinstance(one, RecordError) else one for *_, one in
            answered(source, DEFAULTS)]  # fmt: skip


def read_text(folder: Path, text: str) -> list[AnsweredSeries | str]:
    path = folder / "answer.json"
    path.write_text(text, encoding="utf-8")
    return read(path)


@needs_files
def test_published_series_keep_their_times_and_gaps() -> None:
    simple = read(REAL / "range_simple.result.json")
    assert [(one.at_us[0], one.values) for one in simple if isinstance(one, AnsweredSeries)] == [
        (1_641_889_530_123_000, [21.0, 32.0, 43.0]),
        (1_641_889_529_123_000, [54.0, 76.0]),
    ]
    missing = read(REAL / "range_missing.result.json")
    assert [one.at_us for one in missing if isinstance(one, AnsweredSeries)] == [
        [1_641_889_533_000_000, 1_641_889_534_000_000, 1_641_889_537_000_000],
        [1_641_889_532_000_000, 1_641_889_536_000_000],
    ]
    assert read(REAL / "range_nan.result.json") == [NO_METRIC]
    assert read(REAL / "range_infinity.result.json") == [NO_METRIC]


@pytest.mark.parametrize("kind", ["matrix", "vector", "promtool matrix", "promtool vector"])
def test_all_forms_of_an_answer_give_the_same_series(tmp_path: Path, kind: str) -> None:
    point = [AT + 0.5, "41"]
    points = {"values": [point]} if "matrix" in kind else {"value": point}
    result = [{"metric": TEMPERATURE, **points}]
    data = {"resultType": kind, "result": result}
    whole: object = result if "promtool" in kind else {"status": "success", "data": data}
    wanted = AnsweredSeries(
        "DCGM_FI_DEV_GPU_TEMP", TEMPERATURE, [AT * 1_000_000 + 500_000], [41.0], 0, 0, 0
    )
    assert read_text(tmp_path, json.dumps(whole)) == [wanted]


def test_every_value_of_a_series_is_counted_whatever_it_is(tmp_path: Path) -> None:
    values = [
        [AT, "NaN"],
        [AT, "+Inf"],
        [AT, "x"],
        [AT],
        [12, "1"],
        [True, "1"],
        [AT, 1],
        [AT, "1"],
    ]
    (series,) = read_text(tmp_path, json.dumps([{"metric": TEMPERATURE, "values": values}]))
    assert isinstance(series, AnsweredSeries)
    assert series[2:] == ([AT * 1_000_000], [1.0], 1, 1, 5)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('[{"values": []}]', [NO_SERIES]),
        ('[{"metric": {"__name__": 7}, "values": []}]', [NO_SERIES]),
        ('[{"metric": {"__name__": "a"}}, 7]', [NO_SERIES, NO_SERIES]),
        ('{"status":"success","data":{"resultType":"matrix","result":[]}}', []),
        ('[{"metric": {"__name__": "a"}, "val', ["cut off before its end"]),
    ],
)
def test_what_is_no_series_is_told(tmp_path: Path, text: str, wanted: list[str]) -> None:
    assert read_text(tmp_path, text) == wanted


def test_an_error_of_prometheus_is_told(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="Prometheus says query timed out"):
        read_text(tmp_path, '{"status":"error","errorType":"timeout","error":"query timed out"}')
