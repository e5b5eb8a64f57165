"""Machines: samples that a reader sends, and what is wrong with them in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

PAGE = "views/nodes/diagnose.py"


def power() -> bytes:
    rng = np.random.default_rng(5)
    rows = [
        f"{t},<b>n{k}</b>,{500 + 10 * rng.random() - 200 * (k == 3 and t >= 200):.1f}"
        for t in range(500) for k in range(6)
    ]  # fmt: skip
    return "\n".join(["at,node,power", *rows]).encode()


@pytest.mark.slow
def test_the_page_asks_for_samples_and_names_the_machine(
    open_page: Callable[..., AppTest], tmp_path: Path
) -> None:
    page = open_page(tmp_path / "none", PAGE)
    assert page.title[0].value == "Which machine is faulty?"
    assert any("faultline machines metrics.parquet" in code.value for code in page.code)
    page.file_uploader(key="machines_files").set_value(("power.csv", power(), "text/csv")).run()
    assert not page.exception
    assert "n3" in page.title[0].value
    assert "is faulty since 1 Jan 1970 00:03:" in page.title[0].value.replace("\\", "")


@pytest.mark.slow
def test_what_is_wrong_with_a_file_is_one_line(
    open_page: Callable[..., AppTest], tmp_path: Path
) -> None:
    page = open_page(tmp_path / "none", PAGE)
    page.file_uploader(key="machines_files").set_value(("x.csv", b"node,power\na,1\n", "")).run()
    (warning,) = page.warning
    assert "/tmp" not in warning.value
    assert "has no column of times" in warning.value
