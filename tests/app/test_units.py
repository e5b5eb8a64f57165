"""Every number, axis and column says its unit, or is a count or ratio that is listed here."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

from app.words import cells

if TYPE_CHECKING:
    from collections.abc import Iterator

APP = Path(cells.__file__).parents[1]
UNIT = re.compile(
    r"\((h|s|ms|min|GPU-h|node-days|%|UTC|x|ratio)\)|\(%|per 1,000 node-days|GPU-hours|node-days|"
    r"Node-days|Minutes|Seconds|Bytes|\{.*\}|\(GPUs|min to years|productive / available|\(attempts\)"
)
MEASURED = ("number", "hours", "rate", "mttf")
"""Kinds of columns with a unit; shares and ETTR are ratios, counts are of what their title names."""
RATIOS = {
    "Beside other nodes", "Beside other repairs", "Times usual", "Rate ratio", "Not adjusted",
    "Slowdown", "S", "Mean S", "Launch", "Dispersion", "Score", "Score then", "Expected", "Lift",
    "Usual failures", "Statistic", "Peak over level", "z", "In 100,000 rows",
}  # fmt: skip
"""Of two numbers of one unit, and scores; Expected are incidents beside Records of them, Usual
failures stand beside Failures."""
OF_EACH_ROW = {
    "At",
    "Least",
    "Mean",
    "Greatest",
    "Rose by",
    "Threshold",
    "Peak",
    "Level before",
    "Last loss",
}
"""Each row has the unit of the metric or input that it names; a loss has none."""
AXES = {
    "Training step", "Data-parallel rank", "Pipeline stage", "Receiver", "Sender",
    "Workers fixed, slowest first", "Cause that was found", "Week beginning (Monday)",
    "Failed attempts", "Bit", "Rank", "Process group",
}  # fmt: skip
"""Ranks, names, counts and days."""


def called(name: str, folder: str) -> Iterator[tuple[str, ast.Call]]:
    """Calls of a function or method in the modules of a folder."""
    for path in sorted((APP / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                function = node.func
                said = getattr(function, "id", getattr(function, "attr", ""))
                if said == name:
                    yield path.relative_to(APP).as_posix(), node


def text(node: ast.expr | None) -> str:
    """A text as it is written; what is computed stands in braces."""
    if node is None:
        return ""
    if isinstance(node, ast.Constant):
        return str(node.value)
    return "{" + ast.unparse(node) + "}"


def test_measured_columns_name_their_unit() -> None:
    lacking = []
    columns = [("unit", *found) for found in called("Column", "answers")]
    columns += [("of", *found) for found in called("field", "answers")]
    for fourth, place, call in columns:
        said = dict(zip(("key", "title", "kind", fourth), call.args, strict=False))
        said |= {word.arg: word.value for word in call.keywords if word.arg}
        kind, unit = text(said.get("kind")), text(said.get("unit"))
        title = text(said.get("title"))
        if not title:  # of data alone, or a term of the glossary gives it
            continue
        if kind in MEASURED and not unit and not UNIT.search(title):
            lacking.append((place, title))
    assert {title for _, title in lacking} == RATIOS | OF_EACH_ROW, lacking


def test_axes_name_their_unit() -> None:
    lacking = []
    for name in ("update_xaxes", "update_yaxes"):
        for place, call in called(name, "figures"):
            for word in call.keywords:
                title = text(word.value) if word.arg == "title" else ""
                if title and not UNIT.search(title):
                    lacking.append((place, title))
    assert {title for _, title in lacking} <= AXES, lacking
    assert len(lacking) >= len(AXES) / 2


def test_a_unit_stands_once_above_a_column() -> None:
    column = cells.Column("lost", "Lost (GPU-h)", "number", "GPU-h")
    assert cells.titles(column) == ("Lost (GPU-h)",)
    assert cells.titles(cells.Column("at", "At least", "number", "GPU-h")) == ("At least (GPU-h)",)
    assert cells.titles(cells.Column("age", "Age", "hours", "h")) == ("Age",)  # 14.2 h says it
    assert cells.headed(cells.Column("age", "Age", "hours", "h")) == "Age (h)"  # a grid's 14.2 not
    assert cells.titles(cells.Column("first_at", "First", "time")) == ("First (UTC)",)
