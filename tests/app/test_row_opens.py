"""What a click on any cell of a row opens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from app.answers.content import Part, Table
from app.show import table
from app.words.cells import Column

if TYPE_CHECKING:
    from app.words.cells import Link

OPENED = Part("Rows behind", lambda ask, gpus, limit: None, (), ("n",))  # type: ignore[arg-type, return-value]
COLUMNS = (
    Column("hidden", "Hidden", shown=False),
    Column("job_id", "Job", link="job"),
    Column("n", "n", "count"),
    Column("node", "Node", link="node"),
    Column("why", "Why"),
)
ROW = ("x", "7", 3.0, "n1", None)


@pytest.mark.parametrize(
    ("row", "cell", "opens", "expected"),
    [
        (ROW, "job_id", None, "job"),
        (ROW, "node", None, "node"),
        (ROW, "n", None, "job"),
        (ROW, "why", None, "row"),
        (("x", None, 3.0, "n1", "y"), "n", None, "row"),
        (("x", "7", 3.0, None, "y"), "node", None, "row"),
        (ROW, "n", OPENED, "part of 3.0"),
        (ROW, "why", OPENED, "part of 3.0"),
        (ROW, "node", OPENED, "node"),
    ],
)
def test_any_cell_opens_something(
    monkeypatch: pytest.MonkeyPatch,
    row: tuple[Any, ...],
    cell: str,
    opens: Part | None,
    expected: str,
) -> None:
    opened: list[str] = []

    def go(link: Link, _row: dict[str, Any], _scope: object) -> None:
        opened.append(link)

    monkeypatch.setattr(table.links, "go", go)
    monkeypatch.setattr(
        table.st, "dialog", lambda *_, **__: lambda _draw: lambda *_: opened.append("row")
    )
    of = Table("rows", "Rows", COLUMNS, (row,), opens=opens)
    shown = pd.DataFrame([row], columns=[column.key for column in COLUMNS])
    table._open(
        of,
        shown,
        (0, cell),
        lambda part: opened.append(f"part of {part.arguments[0]}"),
        None,  # type: ignore[arg-type]
    )
    assert opened == [expected]
