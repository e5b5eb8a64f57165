"""Models below a store: named by what they learnt, one of them the site's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from data.errors import StoreError
from data.models import load_model, save_model

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST, SECOND = "a" * 64, "b" * 64


def test_the_last_model_saved_is_the_sites_and_the_first_stays(tmp_path: Path) -> None:
    path = save_model(tmp_path / "store", FIRST, {"format": 1, "weights": [0.1, 1e-9]})
    assert path == tmp_path / "store" / "models" / f"{FIRST}.json"
    save_model(tmp_path / "store", SECOND, {"format": 2})
    assert load_model(tmp_path / "store") == {"format": 2}
    assert load_model(tmp_path / "store", FIRST) == {"format": 1, "weights": [0.1, 1e-9]}


def test_saving_leaves_no_other_file(tmp_path: Path) -> None:
    save_model(tmp_path, FIRST, {})
    save_model(tmp_path, FIRST, {})
    assert sorted(one.name for one in (tmp_path / "models").iterdir()) == [
        "CURRENT",
        f"{FIRST}.json",
    ]


def test_a_store_without_a_model_has_none(tmp_path: Path) -> None:
    assert load_model(tmp_path) is None
    assert load_model(tmp_path / "nothing") is None
    save_model(tmp_path, FIRST, {})
    assert load_model(tmp_path, SECOND) is None


DAMAGES: dict[str, Callable[[Path], object]] = {
    "no JSON": lambda models: (models / f"{FIRST}.json").write_text("{", encoding="utf-8"),
    "no object": lambda models: (models / f"{FIRST}.json").write_text("[]", encoding="utf-8"),
    "the model is gone": lambda models: (models / f"{FIRST}.json").unlink(),
    "a path elsewhere": lambda models: (models / "CURRENT").write_text("../../x", encoding="utf-8"),
    "no text": lambda models: (models / f"{FIRST}.json").write_bytes(b"\xff\xfe\x00"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_model_is_refused_with_its_place(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    save_model(tmp_path, FIRST, {"format": 1})
    damage(tmp_path / "models")
    with pytest.raises(StoreError, match=r"models/.*train"):
        load_model(tmp_path)


def test_a_name_that_is_no_hash_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="must be a SHA-256"):
        save_model(tmp_path, "../escape", {})


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file", encoding="utf-8")
    with pytest.raises(StoreError, match="cannot be written"):
        save_model(tmp_path, FIRST, {})
