"""What a process tells of files is what the same question says here, and nothing of them stays."""

from __future__ import annotations

import io
import json
import math
import time
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from app.actions import DataError, Options, RunningExamination, stated
from app.actions.parcel import Parcel
from app.answers.nodes import links, machines, validation
from data.ingest.readers.tables import mapping_sample
from data.sandbox import wire

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Kept:
    name: str
    values: np.ndarray[Any, Any]
    more: tuple[Any, ...]


def there_and_back(parcel: Parcel, value: Any) -> Any:
    return json.loads(wire.line(parcel.packed(value)), object_hook=parcel.restore)


def same(one: Any, other: Any) -> bool:
    """Whether two results are equal, arrays and frames by what they hold, NaN to NaN."""
    one, other = (each.item() if isinstance(each, np.generic) else each for each in (one, other))
    if type(one) is not type(other):
        return False
    if is_dataclass(one):
        return all(same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(
            one, other, equal_nan=one.dtype.kind == "f"
        )
    if isinstance(one, pd.DataFrame):
        return one.astype(object).equals(other.astype(object))
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and math.isnan(one):
        return math.isnan(other)
    return bool(one == other)


@pytest.mark.parametrize(
    "value",
    [
        Kept("a", np.array([[1.5, np.nan], [3.0, 4.0]]), ()),
        Kept("b", np.arange(6).reshape(2, 3)[:, ::2], (1, [2, (3,)], {"x": (4, None)})),
        Kept("c", np.zeros((0, 3), dtype=bool), (datetime(2026, 1, 1, tzinfo=UTC), b"\0\xff")),
        [Kept('"\\\n', np.array([]), (math.inf, math.nan)), {"of": ["Kept", []], "array": 1}],
    ],
    ids=["nan", "nested", "empty", "tags"],
)  # fmt: skip
def test_a_value_comes_back_as_it_was_sent(value: Any) -> None:
    assert same(there_and_back(Parcel(Kept), value), value)


def test_a_frame_comes_back_with_its_times_and_a_column_of_many_kinds_as_texts() -> None:
    at = pd.to_datetime(["2026-01-01T12:00:00Z", None])
    frame = pd.DataFrame({"at": at, "n": [1, 2], "mixed": ["a", 1.5]})
    back = there_and_back(Parcel(), frame)
    assert list(back["at"]) == list(at)
    assert list(back["n"]) == [1, 2]
    assert list(back["mixed"]) == ["a", "1.5"]


def test_what_no_side_named_is_neither_sent_nor_made() -> None:
    with pytest.raises(KeyError):
        Parcel().packed(Kept("a", np.array([]), ()))
    with pytest.raises(KeyError):
        there_and_back(Parcel(), 0) or Parcel().restore({"of": ["Kept", ["a", [], []]]})


DELAYS = "source,destination,delay_us\n" + "".join(
    f"n{a},n{b},{20 + (a * b) % 3 + 40 * (a == 2)}\n"
    for a in range(6) for b in range(6) if a != b for _ in range(4)
)  # fmt: skip
RESULTS = "".join(
    f'{{"node": "n{at}", "mem-bw/h2d_bw:0": {20.0 if at == 4 else 26.0}}}\n' for at in range(8)
)
POWER = "at,node,power\n" + "".join(
    f"{t},n{k},{500 + (t * 7 + k * 3) % 11 - 200 * (k == 3 and t >= 200)}\n"
    for t in range(500) for k in range(6)
)  # fmt: skip


def asked(root: Path, question: str, content: str, *more: None, **said: Any) -> Any:
    sent = io.BytesIO(content.encode())
    return RunningExamination(root, question, [("mine.csv", sent), *more], said).result()


@pytest.mark.slow
def test_a_process_says_of_delays_results_and_samples_what_is_said_here(tmp_path: Path) -> None:
    files = {"links": DELAYS, "validation": RESULTS, "machines": POWER}
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    root = tmp_path / "store"
    found = asked(root, "links", DELAYS, None, least_ratio=1.2)
    assert same(found, links.examined(str(tmp_path / "links")))
    found = asked(root, "validation", RESULTS, least_similarity=0.95)
    assert same(found, validation.judged([str(tmp_path / "validation")]))
    here = machines.examined([str(tmp_path / "machines")])
    found = asked(root, "machines", POWER, roles="")
    timed = {"read_seconds", "seconds"}
    assert all(
        same(getattr(found, f.name), getattr(here, f.name))
        for f in fields(here)
        if f.name not in timed
    )
    assert not root.exists()


@pytest.mark.slow
def test_a_process_says_of_a_table_what_a_mapping_would_read(tmp_path: Path) -> None:
    table = "id,status,begun\n1,ok,2026-01-01T00:00:00\n2,bad,never\n"
    toml = '[columns]\njob_id = "id"\nstate = "status"\nstart_at = "begun"\n[states]\nok = "COMPLETED"\n'
    options = stated(Options(timezone="UTC"))
    taken = asked(tmp_path, "mapping sample", table, name="mine.csv", options=options)
    here = mapping_sample.sample("mine.csv", io.BytesIO(table.encode()), Options(timezone="UTC"))
    assert same(taken, here)
    said = {"name": "mine.csv", "header": taken.header, "options": options}
    text = taken.content.decode()
    words = asked(tmp_path, "mapping states", text, column="status", **said)
    assert words == ["ok", "bad"]
    found = asked(tmp_path, "mapping preview", text, source="job-table", toml=toml, **said)
    assert (found.n_records, found.n_kept, found.n_rejected) == (2, 1, 1)
    assert found.rows["state"].tolist() == ["COMPLETED"]


@pytest.mark.slow
def test_what_is_wrong_is_told_of_the_name_that_people_know(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^mine\.csv: holds no delay of a pair"):
        asked(tmp_path, "links", "source,destination,delay_us\na,b,x\n", None, least_ratio=1.2)
    found = asked(tmp_path, "validation", f"no json\n{RESULTS}", least_similarity=0.95)
    assert found.rejected_at == "mine.csv:1"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_what_is_cancelled_ends_at_once_and_says_so(tmp_path: Path) -> None:
    many = "source,destination,delay_us\n" + "n1,n2,20\n" * 5_000_000
    sent = io.BytesIO(many.encode())
    running = RunningExamination(
        tmp_path, "links", [("mine.csv", sent), None], {"least_ratio": 1.2}
    )
    assert not running.wait(1.5)
    began = time.monotonic()
    running.cancel()
    assert time.monotonic() - began < 2
    with pytest.raises(DataError, match="was cancelled"):
        running.result()
    assert list(tmp_path.iterdir()) == []
