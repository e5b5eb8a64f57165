"""A number in an address counts where it is one within its bounds; else the page's own stands."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path

import pytest
from streamlit.elements.widgets.number_input import NumberInputSerde
from streamlit.proto.NumberInput_pb2 import NumberInput
from streamlit.runtime.state.query_params import parse_url_param
from streamlit.testing.v1 import AppTest

from app.widgets import inputs
from app.widgets.inputs import LONGEST, Within

APP = Path(inputs.__file__).parents[1]
N_ADDRESSES = 2_000
WHOLE, ANY = Within(1, 1_000), Within(0.01, 0.99)
NONE = [
    "1e999", "-1e999", "1e400", "inf", "-Infinity", "nan", "0x10", "1_0", "true", "None", "-1",
    "0", "1001", "1.5", "1e-3", "9" * 1_000_000, "0" * LONGEST + "8", "٣", "\uff11", "²", "8\x00",
    "\ud800", "1,5", "8 8", "8e", "e8", "--8", "0001-01-01", "99999", "½", "\u202e8", "[8]",
]  # fmt: skip
PIECES = [*"0123456789", "1e", "e", "999", "-", "+", ".", " ", "inf", "nan", "0x", "_", ",", "\x00",
          "\ud800", "٣", "true", "%", "&", "[", "9" * 300]  # fmt: skip


def two_inputs() -> None:
    """A page with two numbers in its address."""
    import streamlit as st

    from app.widgets import inputs

    whole = inputs.number("Whole", inputs.Within(1, 1_000), key="whole", value=8)
    open_ = inputs.number("Open", inputs.Within(0.5, 2.5), key="open", value=None)
    st.session_state["seen"] = [whole, open_]


@pytest.mark.parametrize("written", NONE, ids=lambda text: ascii(text)[:20])
def test_what_is_no_whole_number_within_the_bounds_is_left_out(written: str) -> None:
    assert WHOLE.left_out(written) == "is no whole number from 1 to 1,000"


def test_what_is_one_is_taken() -> None:
    for written in ("1", "1000", " 8", "+8", "8.0", "1e3", "008", ""):
        assert WHOLE.left_out(written) is None, written
    assert ANY.left_out("0.5") is None
    assert ANY.left_out("1") == "is no number from 0.01 to 0.99"


def test_of_2000_random_addresses_streamlit_reads_each_that_is_taken_within_the_bounds() -> None:
    chance, n_taken = random.Random(27), 0
    for _ in range(N_ADDRESSES):
        within = chance.choice([WHOLE, ANY, inputs.GPUS])
        written = "".join(chance.choices(PIECES, k=chance.randint(1, 5)))
        if within.left_out(written) is not None or not written.strip():
            continue
        n_taken += 1
        kind = NumberInput.INT if isinstance(within.most, int) else NumberInput.FLOAT
        reads = NumberInputSerde(None, kind, within.least, within.most)
        read = reads.deserialize(parse_url_param(written, "double_value"))
        assert read is not None
        assert math.isclose(read, float(written)), written
        assert within.least <= read <= within.most
    assert n_taken > N_ADDRESSES / 20
    print(f"{N_ADDRESSES:,} random texts: {n_taken} are numbers within their bounds")


def test_every_number_within_the_bounds_is_taken_as_streamlit_writes_it() -> None:
    assert [n for n in range(1, 1_001) if WHOLE.left_out(str(n)) is not None] == []
    chance = random.Random(27)
    drawn = [chance.uniform(0.01, 0.99) for _ in range(N_ADDRESSES)]
    assert [n for n in drawn if ANY.left_out(str(n)) is not None] == []


@pytest.mark.parametrize("written", ["1e999", "9" * 300, "0", "a <b> *c*", ["3", "1e999"]])
def test_a_page_says_what_it_left_out_until_another_number_is_entered(
    written: str | list[str],
) -> None:
    page = AppTest.from_function(two_inputs)
    page.query_params["whole"] = page.query_params["open"] = written
    page.run()
    for _ in range(2):  # what a browser tells of itself runs a page again
        assert not page.exception
        assert page.session_state["seen"] == [8, None]
        first, second = (each.value for each in page.warning)
        assert first.startswith("whole=")
        assert first.endswith("in the address is no whole number from 1 to 1,000: left out.")
        assert "open=" in second
        assert "<b>" not in first
        assert len(first) < 120
        page.run()
    assert "whole" not in page.query_params
    page.number_input(key="whole").set_value(9).run()
    assert page.session_state["seen"] == [9, None]
    assert [each.value.partition("=")[0] for each in page.warning] == ["open"]


@pytest.mark.parametrize("written", ["64", ["1e999", "64"], " 64"])
def test_a_number_within_the_bounds_opens_the_page_with_it(written: str | list[str]) -> None:
    page = AppTest.from_function(two_inputs)
    page.query_params["whole"] = written
    page.run()
    assert page.session_state["seen"] == [64, None]
    assert not page.warning


def test_the_pages_own_number_may_lie_beyond_the_bounds() -> None:
    def beyond() -> None:
        from app.widgets import inputs

        inputs.number("Minutes", inputs.Within(0.0, 10.0), key="minutes", value=12.5)

    page = AppTest.from_function(beyond).run()
    assert (page.number_input[0].value, [*page.exception]) == (12.5, [])


def test_no_other_number_is_read_from_an_address() -> None:
    bound = []
    for path in APP.rglob("*.py"):
        text = path.read_text("utf-8")
        if "query-params" in text and re.search("number_input|slider", text):
            bound.append(path.name)
    assert bound == ["inputs.py"]
