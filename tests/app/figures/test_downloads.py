"""Every figure can be downloaded as what it is drawn from."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

import pytest

from app import figures

FOLDER = Path(figures.__file__).parent
KINDS = sorted(
    ".".join(path.relative_to(FOLDER).with_suffix("").parts)
    for path in FOLDER.glob("*/*.py")
    if "\ndef frame(" in path.read_text(encoding="utf-8")
)
OF_A_PAGE = ("mode", "note", "timezone")
"""What a page tells a figure, and not its data."""


@pytest.mark.parametrize("kind", KINDS)
def test_its_frame_takes_what_the_figure_takes(kind: str) -> None:
    module = import_module(f"app.figures.{kind}")
    taken = inspect.signature(module.figure).parameters.values()
    own = [each for each in taken if each.name not in OF_A_PAGE]
    data = [each.name for each in own if each.kind is each.POSITIONAL_OR_KEYWORD]
    options = {each.name: None for each in own if each.kind is each.KEYWORD_ONLY}
    bound = inspect.signature(module.frame).bind(*data, **options)
    assert bound.args == tuple(data)
