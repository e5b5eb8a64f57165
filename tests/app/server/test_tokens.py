"""The file of tokens: made for its owner alone, kept over a restart, refused where it is wrong."""

import os
import stat
from pathlib import Path

import pytest

from app.server.tokens import ServeError, kept

ONE, OTHER = "x" * 20, "Y_-.~" * 8


def written(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "tokens"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_it_is_made_for_its_owner_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    before = os.umask(0)
    try:
        first = kept(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [len(token) for token in first] == [43]
    assert kept(path) == first


def test_a_line_may_name_a_person(tmp_path: Path) -> None:
    path = written(tmp_path, f"# ours\n\n {ONE} \nann@ops  {OTHER}\n  # bob {OTHER}\n")
    assert kept(path) == {ONE: None, OTHER: "ann@ops"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no token"),
        ("# nothing\n\n", "holds no token"),
        ("short\n", "line 1: the token is shorter than 20"),
        (f"{ONE}\nann {ONE}\n", "line 2: stands there before"),
        (f"ann smith {ONE}", "line 1: is none of"),
        (f"ann {ONE}é", "line 1: is none of"),
        (f"ann {ONE}&x=1", "line 1: is none of"),
        (f"ann\x01 {ONE}", "line 1: a name has up to 64"),
        (f"{'a' * 65} {ONE}", "line 1: a name has up to 64"),
    ],
)
def test_a_wrong_file_is_refused_and_no_secret_told(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(ServeError, match=message) as refusal:
        kept(written(tmp_path, text))
    assert ONE not in str(refusal.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(ServeError, match="run chmod 600"):
        kept(written(tmp_path, ONE, mode))


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ServeError, match="is no file"):
        kept(tmp_path)
