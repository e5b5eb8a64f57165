"""faultline report: one page, the files it wrote, a hash of what it says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable


def test_it_names_its_files_and_hashes_its_content(
    faultline: Callable[..., Any], demo_store: Path, tmp_path: Path
) -> None:
    said = faultline("report", "--store", demo_store, "--out", tmp_path / "new" / "folder")
    assert said.code == 0
    ((path),) = said.json["files"]
    assert Path(path).parent == tmp_path / "new" / "folder"
    page = Path(path).read_text(encoding="utf-8")
    assert "synthetic" in page.lower()
    assert len(said.json["content_sha256"]) == 64
    again = faultline("report", "--store", demo_store, "--out", tmp_path)
    assert again.json["content_sha256"] == said.json["content_sha256"]


def test_it_counts_jobs_of_all_sizes_unless_told_otherwise(
    faultline: Callable[..., Any], demo_store: Path, tmp_path: Path
) -> None:
    def page(*options: object) -> str:
        said = faultline("report", "--store", demo_store, "--out", tmp_path, *options)
        return Path(said.json["files"][0]).read_text(encoding="utf-8")

    failures = faultline("mttf", "--store", demo_store, "--min-gpus", 0).json["failures"]
    assert f"{failures} failures in" in page()
    assert "jobs of 129 GPUs and more" in page("--min-gpus", 129)


@pytest.mark.parametrize("form", ["csv", "table"])
def test_its_answer_has_other_forms(
    faultline: Callable[..., Any], empty_store: Path, tmp_path: Path, form: str
) -> None:
    said = faultline("report", "--store", empty_store, "--out", tmp_path, "--format", form)
    assert said.code == 0
    assert "fleet.html" in said.out
    assert "content_sha256" in said.out


REFUSED = {
    "no store": (["--store", "nowhere"], "nowhere: holds no store"),
    "an unknown form": (["--as", "html,docx"], "--as must be one of html, pdf, xlsx, md, json, got 'docx'"),
    "an unknown kind": (["--kind", "weather"], "invalid choice: 'weather'"),
    "a file as folder": (["--out", __file__], "name another folder"),
    "a period backwards": (["--from", "2026-02-01", "--to", "2026-01-01"], "must be before --to"),
    "an unknown cluster": (["--cluster", "x"], "--cluster must be one of the store's, got 'x'"),
    "a level in percent": (["--conf-level", "95"], "pass 0.95 for 95 %"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_a_report_that_cannot_be_is_refused(
    refused: Callable[..., str], demo_store: Path, tmp_path: Path, case: tuple[list[str], str]
) -> None:
    options, message = case
    store = [] if "--store" in options else ["--store", demo_store]
    out = [] if "--out" in options else ["--out", tmp_path]
    assert message in refused("report", *store, *out, *options)
