"""An open page follows CURRENT, and says so where that cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from streamlit.testing.v1 import AppTest

if TYPE_CHECKING:
    from pathlib import Path


def open_page() -> None:
    """The part of a page that runs again by itself."""
    from app.widgets import follow

    follow.store(1)


@pytest.mark.parametrize("damage", [b"", b"[" * 200_000, b"\xff\x00", b"null", b'{"snapshot": 1}'])
def test_damage_of_current_is_a_notice_on_an_open_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes
) -> None:
    (tmp_path / "CURRENT").write_bytes(damage)
    monkeypatch.setenv("FAULTLINE_STORE", str(tmp_path))
    page = AppTest.from_function(open_page).run()
    assert not page.exception
    assert [str(tmp_path / "CURRENT") in each.value.replace("\\", "") for each in page.warning] == [
        True
    ]
