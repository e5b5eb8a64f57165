"""Events and states of gpud, in the shapes of its API (api/v1/types.go, docs/apis/swagger.json)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from app.actions import Options, ingest_files
from data.errors import SourceError
from data.ingest.reader import Source
from data.ingest.readers import known_readers
from data.ingest.readers.health import gpud
from data.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from data.ingest.reader import Batch

MODIFIED = datetime(2025, 3, 1, 12, tzinfo=UTC)
XID = "XID 79 (GPU has fallen off the bus) detected on GPU PCI:0000:9B:00 UUID:GPU-1"


def at(minute: int) -> str:
    return f"2025-03-01T10:{minute:02}:00Z"


def event(minute: int, message: str = XID, **fields: Any) -> dict[str, Any]:
    return {"time": at(minute), "name": "error_xid", "type": "Fatal", "message": message} | fields


def component(name: str, **lists: Any) -> dict[str, Any]:
    return {"component": name, "startTime": at(0), "endTime": at(59)} | lists


def read(folder: Path, found: Any, **stated: Any) -> tuple[Batch, list[tuple[Any, ...]]]:
    path = folder / "gpud.json"
    path.write_text(found if isinstance(found, str) else json.dumps(found))
    options = Options(**{"node": "n1", "cluster": "c"} | stated)
    batch = gpud.READER.read(Source(path, path.name, MODIFIED), options, duckdb.cursor())
    frame = batch.tables["health_events"].astype(object)
    frame = frame.where(frame.notna(), None)
    names = ["node", "check_name", "severity", "gpu", "xid", "sxid"]
    assert batch.rows_kept == len(frame)
    return batch, list(frame[names].itertuples(index=False, name=None))


def test_events_by_component_an_xid_with_its_gpu(tmp_path: Path) -> None:
    sxid = "SXID 20034 (LTSSM Fault Up) detected on PCI:0000:9b:00"
    found = [
        component("accelerator-nvidia-error-xid", events=[event(1), event(2, sxid, name="error_sxid")]),
        component("disk", events=None),
        component("os", events=[event(3, "reboot", name="reboot", type="Warning"),
                                event(4, "x", type="Critical"), event(5, "y", type="Unknown")]),
        component("memory", events=[event(6, "used", name=None, type="Info")]),
    ]  # fmt: skip
    assert [name for name, r in known_readers().items() if r.sniff(json.dumps(found))] == ["gpud"]
    batch, rows = read(tmp_path, found)
    assert rows == [
        ("n1", "error_xid", "critical", "0000:9b:00", 79, None),
        ("n1", "error_sxid", "critical", "0000:9b:00", None, 20034),
        ("n1", "reboot", "warning", None, None, None),
        ("n1", "error_xid", "warning", None, None, None),
        ("n1", "error_xid", None, None, None, None),
        ("n1", "memory", "info", None, None, None),
    ]
    assert batch.skipped_by_reason == {"no events": 1}
    assert (batch.first_at, batch.last_at) == (
        datetime.fromisoformat(at(1)), datetime.fromisoformat(at(6))
    )  # fmt: skip


def test_states_that_are_not_well(tmp_path: Path) -> None:
    repair = {"suggested_actions": {"description": "d", "repair_actions": ["REBOOT_SYSTEM"]}}
    states = [
        {"time": at(1), "name": "gpu", "health": "Unhealthy", "reason": XID} | repair,
        {"health": "Degraded", "reason": "r", "error": "e"}, {"health": "Initializing"},
        {"name": "a", "healthy": True}, {"name": "b", "healthy": False, "reason": "old"},
    ]  # fmt: skip
    for found in (
        [component("xid", states=states)],
        [component("xid", info={"states": states, "events": None, "metrics": [{"value": 1}]})],
    ):
        batch, rows = read(tmp_path, found)
        assert rows == [
            ("n1", "xid", "critical", None, None, None), ("n1", "xid", "warning", None, None, None),
            ("n1", "xid", "warning", None, None, None),
        ]  # fmt: skip
        assert batch.skipped_by_reason == {"healthy": 2}
        assert "states without a time: taken as of 2025-03-01 12:00:00 UTC" in batch.notices[0]
        times = batch.tables["health_events"]["observed_at"].tolist()
        assert times == [datetime.fromisoformat(at(1)), MODIFIED, MODIFIED]
        assert batch.tables["health_events"]["message"][1] == "r: e"


def test_a_component_never_gets_the_name_of_the_one_before(tmp_path: Path) -> None:
    nameless = {"time": at(2), "type": "Info", "message": "m"}
    found = [component("a", node="n7", events=[event(1)]), {"events": [nameless, event(3)]}]
    batch, rows = read(tmp_path, found, node=None)
    assert [row[0] for row in rows] == ["n7"]
    assert dict(batch.rejected.by_reason) == {"names no node: pass --node": 2}
    batch, rows = read(tmp_path, found)
    assert dict(batch.rejected.by_reason) == {"no name": 1}


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (event(1) | {"time": "yesterday"}, "impossible time"),
        (event(1) | {"time": "9999-12-31T23:59:59-14:00"}, "impossible time"),
        (event(1) | {"time": "2025-03-01T10:00:00"}, "a time without zone"),
        (event(1) | {"message": ["x"]}, "a text is none"),
        ({"health": "Excellent"}, "no health that is known"),
        ({"healthy": "yes"}, "no health that is known"),
        ({"suggested_actions": 7, "health": "Unhealthy"}, "suggested_actions is no object"),
        ({"name": "x"}, "no event"), ({}, "no event"),
        (7, "not a JSON object"), (None, "not a JSON object"), ([[]], "not a JSON object"),
        ({"events": [1] * 3} | event(1), "not a JSON object"),
    ],
)  # fmt: skip
def test_a_broken_event_is_rejected_and_the_others_are_read(
    tmp_path: Path, broken: Any, reason: str
) -> None:
    batch, rows = read(tmp_path, [component("a", events=[event(1), broken, event(2)])])
    assert len(rows) == 2
    assert set(batch.rejected.by_reason) == {reason}


@pytest.mark.parametrize("inside", ['{"events":', '[{"info":', '{"states":[', "[", '{"x":'])
def test_what_is_nested_deep_is_rejected(tmp_path: Path, inside: str) -> None:
    for n_levels in (70, 400, 10_000):
        text = f'[{{"component":"a","events":[{inside * n_levels}'
        batch, rows = read(tmp_path, text)
        assert (rows, batch.rejected.total) == ([], 1), n_levels
        closed = "".join({"{": "}", "[": "]"}[sign] for sign in reversed(text) if sign in "{[")
        batch, rows = read(tmp_path, f"{text}1{closed}")
        assert (rows, batch.rows_read) == ([], batch.rejected.total), n_levels


def test_half_a_character_is_replaced(tmp_path: Path) -> None:
    batch, _ = read(
        tmp_path, [component("a", events=[event(1, "\ud83d x"), event(2, "\U0001f600")])]
    )
    assert batch.tables["health_events"]["message"].tolist() == ["\ufffd x", "\U0001f600"]


def test_an_empty_answer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="holds no records"):
        read(tmp_path, [])


@pytest.mark.slow
def test_the_store_is_the_same_for_any_order_split_and_repetition(tmp_path: Path) -> None:
    found = [component(name, events=[event(n, f"{name} {n}") for n in range(3)]) for name in "abc"]

    def content(name: str, parts: list[list[dict[str, Any]]]) -> list[tuple[Any, ...]]:
        paths = []
        for number, part in enumerate(parts):
            paths.append(tmp_path / f"{name}{number}.json")
            paths[-1].write_text(json.dumps(part))
        ingest_files(tmp_path / name, "auto", list(map(str, paths)), Options(node="n1"))
        store = Store.open(tmp_path / name)
        return sorted(store.rows("SELECT * FROM health_events"), key=str)

    whole = content("whole", [found])
    assert len(whole) == 9
    cut = [found[begin:end] for begin, end in pairwise([0, 1, 3])]
    assert content("parts", [*reversed(cut), found[::-1]]) == whole
