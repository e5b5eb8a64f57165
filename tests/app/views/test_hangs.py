"""The tab Hangs: what the stored dumps of a run show, and what stands where there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.actions import Options, ingest_files
from tests.app.cli.golden import hung_dumps

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

PAGE = "views/training/runs.py"
STEPS = "step,loss\n" + "".join(f"{step},2.0\n" for step in range(40))


def test_the_tab_names_the_rank_or_says_how_to_store_dumps(
    tmp_path: Path, open_page: Callable[..., AppTest]
) -> None:
    root, folder = tmp_path / "store", hung_dumps(tmp_path / "dumps")
    (tmp_path / "steps.csv").write_text(STEPS)
    ingest_files(
        root, "training-metrics", [str(tmp_path / "steps.csv")], Options(job_id="7", cluster="c")
    )
    ingest_files(root, "flight-recorder", [str(folder)], Options(job_id="4711", cluster="c"))
    asked = {"runs_tab": "Hangs", "period": "all"}
    page = open_page(root, PAGE, run="7", **asked)
    assert not page.exception
    assert any("No dump of a rank is stored" in each.value for each in page.markdown)
    page = open_page(root, PAGE, run="4711", **asked)
    assert not page.exception
    assert page.title[0].value.startswith("Rank 1 never joined")
    assert [metric.label for metric in page.metric] == [
        "Ranks seen", "Ranks waiting", "Ranks at fault",
    ]  # fmt: skip
