"""How parallel processes share out the tests."""

from __future__ import annotations

import os

import pytest

from tests.conftest import of_all_processes


@pytest.mark.parametrize("nth", range(4))
def test_one_process_takes_the_tests_of_a_folder(
    nth: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    seen = of_all_processes(tmp_path_factory) / "who-tests-this-folder"
    with seen.open("a") as file:
        file.write(os.environ.get("PYTEST_XDIST_WORKER", "the only one") + "\n")
    assert len(set(seen.read_text().splitlines())) == 1
