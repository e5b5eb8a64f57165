"""Failures: what fails, how often, whose fault is it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.actions import Options, ingest_files
from app.answers.failures import verdicts
from data.filters import Selection
from data.store import Store
from tests.app.views.conftest import whole

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

    from analytics.failures.summary import FailureSummary

PAGE = "views/failures/failures.py"
TABS = ["Causes", "Attempts", "States", "Checks", "Right and wrong"]
SACCT = """\
JobID|Cluster|Partition|User|Account|State|Submit|Start|End|NNodes|AllocTRES|NodeList
1|c|p|u|a|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-02T00:00:00|1|gres/gpu=8|n1
2|c|p|u|a|NODE_FAIL|2026-01-02T00:00:00|2026-01-02T00:00:00|2026-01-03T00:00:00|1|gres/gpu=8|n1
"""


@pytest.fixture(scope="module")
def own_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real store: one attempt completed, one lost its node; only to be read."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "sacct.txt").write_text(SACCT)
    ingest_files(folder / "store", "sacct", [str(folder / "sacct.txt")], Options())
    return folder / "store"


FAILURE_LOG = """\
Date,Hardware Identifier,What Failed,Description of Failure,Action Taken
1/1/2026 7:00,node 13,DISK,I/O error on a drive,REPLACE
1/2/2026 8:00,node 14,DIMM,memory errors,REPLACE
"""


@pytest.fixture
def logged_store(tmp_path: Path) -> Path:
    """Failures of nodes that a failure log tells, without jobs."""
    (tmp_path / "log.csv").write_text(FAILURE_LOG)
    log = str(tmp_path / "log.csv")
    ingest_files(tmp_path / "logged", "failure-log", [log], Options(mapping="pnnl"))
    return tmp_path / "logged"


def _summary(store: Path) -> FailureSummary:
    opened = Store.open(store)
    found = verdicts.summarised(opened, Selection())
    opened.close()
    return found


def test_the_answer_comes_first(open_page: Callable[..., AppTest], demo_store: Path) -> None:
    page, summary = open_page(demo_store, PAGE, period="all"), _summary(demo_store)
    assert not page.exception
    assert page.title[0].value == f"{summary.counted.n:,} infrastructure failures"
    assert whole(page).startswith(f"{page.title[0].value}; ")
    failed = f"{summary.n_failed:,} of {summary.n_ended:,} attempts failed."
    assert whole(page).endswith(f" of unknown cause: {failed}")
    assert "synthetic data" in page.caption[0].value
    assert [metric.label for metric in page.metric] == [
        "Failed attempts",
        "Cause unknown",
        "Infrastructure failures",
        "Lost: failures, GPU-h",
        "Unexplained, GPU-h",
        "Held by failed jobs, GPU-h",
    ]
    assert page.metric[2].value == f"{summary.counted.n:,}"
    assert len(page.get("plotly_chart")) == 2


@pytest.mark.parametrize("tab", TABS)
def test_every_tab_of_a_link_opens(
    open_page: Callable[..., AppTest], demo_store: Path, tab: str
) -> None:
    page = open_page(demo_store, PAGE, period="all", failures_tab=tab)
    assert not page.exception
    assert page.dataframe


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value", "changes"),
    [("period", "24h", True), ("period", "7d", True), ("cluster", "demo", False), ("min_gpus", "9", True),
     ("partition", "learn", True), ("account", "vision", True), ("min_gpus", "100000", True)],
)  # fmt: skip
def test_every_filter_of_a_link_changes_the_answer_where_jobs_differ(
    answers: Callable[..., tuple[AppTest, bool]],
    demo_store: Path,
    name: str,
    value: str,
    changes: bool,
) -> None:
    page, changed = answers(demo_store, PAGE, {name: value}, period="all")
    assert page.title
    assert changed == changes  # all jobs are of the one cluster


def test_the_domains_that_a_link_names_are_shown(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, period="all", domain="unknown")
    assert page.get("button_group")
    assert page.session_state["domain"] == ["unknown"]
    assert not page.exception


def test_choosing_no_domain_says_which_there_are(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, period="all")
    page.pills(key="domain").set_value([]).run()
    assert not page.exception
    assert any("No domain is chosen" in text.value for text in page.markdown)


def test_the_table_of_causes_says_who_acts(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    table = open_page(demo_store, PAGE, period="all").dataframe[0].value
    assert table["attempts"].sum() == _summary(demo_store).n_failed
    assert table["who_acts"].str.len().gt(0).all()
    assert table["action"].str.len().gt(0).all()


def test_attempts_are_listed_with_what_speaks_for_their_verdict(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    table = open_page(demo_store, PAGE, period="all", failures_tab="Attempts").dataframe[0].value
    by_events = table[table["method"].eq("health_event")]
    assert len(by_events)
    assert by_events["evidence"].str.len().gt(0).all()


def test_checks_that_fire_around_success_are_marked(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, period="all", failures_tab="Checks")
    table = page.dataframe[0].value
    over = table["over_1_percent"].astype(bool)
    percent = table["percent_of_completed_attempts"]  # to one decimal place
    assert percent[over].min() >= 1.0 >= percent[~over].max()
    assert any("of more than 1 % of completed attempts" in text.value for text in page.markdown)


def test_the_confusion_matrix_of_the_demo_is_the_planted_one(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, period="all", failures_tab="Right and wrong")
    table = page.dataframe[0].value
    assert table["actual"].sum() == table["found"].sum() > 0
    assert any("causes that a health event shows are found" in t.value for t in page.markdown)


def test_a_real_store_says_how_to_confirm_a_cause(
    open_page: Callable[..., AppTest], own_store: Path
) -> None:
    page = open_page(own_store, PAGE, period="all", failures_tab="Right and wrong")
    assert not page.exception
    assert page.code[0].value.startswith("faultline annotate attempt:")
    assert "synthetic" not in page.caption[0].value


def test_a_store_without_events_says_which_would_help(
    open_page: Callable[..., AppTest], own_store: Path
) -> None:
    page = open_page(own_store, PAGE, period="all", failures_tab="Checks")
    assert "faultline ingest kernel-log" in page.code[0].value


def test_a_node_lost_without_evidence_stays_unknown(
    open_page: Callable[..., AppTest], own_store: Path
) -> None:
    page = open_page(own_store, PAGE, period="all")
    assert page.title[0].value.startswith("1 of 2 attempts failed")
    assert page.metric[1].value == "100 %"
    assert page.metric[2].value == "1"
    assert any("Choose above: " in text.value for text in page.markdown)


def test_an_empty_store_says_which_commands_fill_it(
    open_page: Callable[..., AppTest], empty_store: Path
) -> None:
    page = open_page(empty_store, PAGE)
    assert not page.exception
    assert "faultline ingest" in page.code[0].value


def test_failures_that_only_a_log_tells_are_counted_by_cause_as_on_the_command_line(
    open_page: Callable[..., AppTest], logged_store: Path
) -> None:
    page, summary = open_page(logged_store, PAGE, period="all"), _summary(logged_store)
    assert not page.exception
    assert (summary.n_failed, summary.n_failed_attempts) == (2, 0)
    assert page.title[0].value == "2 infrastructure failures"
    assert whole(page).endswith(": 2 failures of nodes known without jobs.")
    causes = next(f.value for f in page.dataframe if "cause" in f.value.columns)
    assert sorted(causes["cause"]) == ["disk", "host_memory"]
    assert not page.metric


def test_failures_of_attempts_and_of_nodes_without_jobs_stand_apart(
    open_page: Callable[..., AppTest], logged_store: Path, tmp_path: Path
) -> None:
    (tmp_path / "sacct.txt").write_text(SACCT)
    ingest_files(logged_store, "sacct", [str(tmp_path / "sacct.txt")], Options())
    page = open_page(logged_store, PAGE, period="all")
    assert whole(page).endswith(
        ": 1 of 2 attempts failed and 2 failures of nodes known without jobs."
    )
    assert page.metric[0].value == "1 of 2"
