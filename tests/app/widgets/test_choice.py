"""One of a few is always one, whatever the address says."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app.widgets import inputs

APP = Path(inputs.__file__).parents[1]


def one() -> None:
    """A page with one choice."""
    import streamlit as st

    from app.widgets import inputs

    st.session_state["seen"] = inputs.choice("Of", ["a", "b"], default="a", key="of")


@pytest.mark.parametrize(
    ("said", "seen"),
    [("", "a"), ("b", "b"), ("c", "a"), ("\x00", "a"), (["", ""], "a"), (["b", ""], "a")],
)
def test_what_is_none_of_them_leaves_the_default(said: str | list[str], seen: str) -> None:
    page = AppTest.from_function(one)
    page.query_params["of"] = said
    for _ in range(2):
        page.run()
        assert not page.exception
        assert page.session_state["seen"] == seen


def test_every_choice_that_must_be_made_is_made_here() -> None:
    texts = {path.name: path.read_text("utf-8") for path in APP.rglob("*.py")}
    drawn = [name for name, text in texts.items() if "segmented_control(" in text]
    assert [name for name in drawn if "required=True" in texts[name]] == ["inputs.py"]
