"""Job: attempts, verdicts, evidence, log, and what people decide."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING
from urllib.parse import quote_plus

import pytest

from app import actions
from data.state import State
from data.store import Store
from tests.app.views.conftest import in_sight

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

PAGE = "views/failures/job.py"
BY_NODE = "failures.method = 'health_event' AND failures.node IS NOT NULL"
OF_CAUSE = """
SELECT jobs.job_id, attempt_key FROM failures JOIN jobs USING (cluster, attempt_key)
WHERE {} ORDER BY attempt_key LIMIT 1
"""


def _one(store: Path, condition: str) -> tuple[str, str]:
    """Job and attempt of a verdict."""
    opened = Store.open(store)
    (found,) = opened.rows(OF_CAUSE.format(condition))
    opened.close()
    return found


def _verdict(page: AppTest) -> list[str]:
    """The cause of the attempt with its node, and who acts."""
    return in_sight(page)[:2]


@pytest.fixture
def own_demo(demo_store: Path, tmp_path: Path) -> Path:
    """A demo store that can be written."""
    return shutil.copytree(demo_store, tmp_path / "store")


def test_without_a_job_failed_attempts_can_be_picked(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, period="all")
    assert not page.exception
    assert page.title[0].value == "Which job?"
    assert "job_id" in page.dataframe[0].value.columns


def test_a_link_shows_cause_who_acts_evidence_and_node(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    job, _ = _one(demo_store, BY_NODE)
    page = open_page(demo_store, PAGE, job=job, cluster="demo")
    assert not page.exception
    assert page.title[0].value.startswith(f"Job {job}")
    verdict, action = _verdict(page)
    assert re.search(r"\]\(node\?\S*period=custom&from=\d\S*&to=\d", verdict)
    assert action.startswith("**")
    evidence = next(f.value for f in page.dataframe if "role" in f.value.columns)
    assert "cause" in set(evidence["role"])
    assert evidence["when"].str.contains("the end").all()
    assert len(page.get("plotly_chart")) == 1


def test_the_line_of_the_first_cause_is_marked_in_the_log(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    job, _ = _one(demo_store, "failures.method = 'log_rule'")
    page = open_page(demo_store, PAGE, job=job)
    assert not page.exception
    assert any("background:rgba" in block.proto.body for block in page.get("html"))


def test_an_attempt_without_a_log_says_how_to_bring_it(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    job, _ = _one(demo_store, "attempt_key NOT IN (SELECT attempt_key FROM job_logs)")
    page = open_page(demo_store, PAGE, job=job)
    assert any("faultline ingest job-log" in block.value for block in page.code)


def test_a_link_names_the_attempt(open_page: Callable[..., AppTest], demo_store: Path) -> None:
    job, _ = _one(
        demo_store,
        "jobs.attempt = 1 AND (cluster, job_id) IN (SELECT cluster, job_id FROM jobs "
        "WHERE attempt = 2)",
    )
    page = open_page(demo_store, PAGE, job=job, attempt="attempt 2")
    assert not page.exception
    assert page.selectbox(key="attempt").value == "attempt 2"
    other = open_page(demo_store, PAGE, job=job, attempt="attempt 1")
    assert _verdict(other) != _verdict(page)


def test_a_failure_without_evidence_says_so_in_words(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    job, _ = _one(demo_store, "failures.method = 'none' AND failures.cause = 'unknown'")
    page = open_page(demo_store, PAGE, job=job, cluster="demo")
    assert "No evidence names a cause" in {caption.value for caption in page.caption}


@pytest.mark.slow
def test_a_cause_undone_after_a_publish_falls_away_on_the_page(
    open_page: Callable[..., AppTest], tmp_path: Path
) -> None:
    log = tmp_path / "sacct.txt"
    log.write_text(
        "JobID|Cluster|State|Submit|Start|End|NNodes|AllocTRES|NodeList\n"
        "1|c|FAILED|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-02T00:00:00|1|gres/gpu=8|n1\n"
    )
    root = tmp_path / "real"
    actions.ingest_files(root, "sacct", [str(log)], actions.Options())
    _, key = _one(root, "true")
    made = actions.annotate(root, f"attempt:c/{key}", "cause", "nvlink")
    log.write_text(log.read_text().replace("\n1|c|", "\n2|c|"))
    actions.ingest_files(root, "sacct", [str(log)], actions.Options())
    page = open_page(root, PAGE, job="1", cluster="c")
    assert "NVLink" in page.markdown[0].value
    actions.undo(root, made.annotation_id)
    page = open_page(root, PAGE, job="1", cluster="c")
    assert "NVLink" not in page.markdown[0].value


def test_an_unknown_job_is_a_notice_with_a_list_to_pick_from(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, period="all", job="nobody")
    assert not page.exception
    assert page.warning[0].value.startswith("job 'nobody' is not in the store")
    assert page.dataframe


def test_a_cause_that_a_person_says_holds_at_once_and_can_be_undone(
    open_page: Callable[..., AppTest], own_demo: Path
) -> None:
    job, key = _one(own_demo, "failures.cause = 'unknown'")
    page = open_page(own_demo, PAGE, job=job)
    page.selectbox(key="said_cause").set_value("power")
    page.text_area(key="said_note").set_value("PSU [2] *died*")
    page.text_input(key="author").set_value("anna")
    next(button for button in page.button if button.label == "Save").click().run()
    assert not page.exception
    assert page.markdown[0].value.startswith("**Power")
    assert any("anna" in caption.value and "cause" in caption.value for caption in page.caption)
    said = State(own_demo).history(f"attempt:demo/{key}")
    assert {(each.field, each.value, each.author) for each in said} == {
        ("cause", "power", "anna"),
        ("note", "PSU [2] *died*", "anna"),
    }
    cause = next(each for each in said if each.field == "cause")
    page.button(key=f"undo_{cause.annotation_id}").click().run()
    assert not page.exception
    assert not page.markdown[0].value.startswith("**Power")
    assert any("undone by anna" in caption.value for caption in page.caption)


def test_a_click_confirms_the_cause_that_the_evidence_names(
    open_page: Callable[..., AppTest], own_demo: Path
) -> None:
    job, _ = _one(own_demo, BY_NODE)
    page = open_page(own_demo, PAGE, job=job)
    page.button(key="said_confirm").click().run()
    assert not page.exception
    assert any("a person's decision" in caption.value for caption in page.caption)
    assert "said_confirm" not in {button.key for button in page.button}


def test_saying_nothing_is_a_notice(open_page: Callable[..., AppTest], own_demo: Path) -> None:
    job, key = _one(own_demo, "failures.cause = 'unknown'")
    page = open_page(own_demo, PAGE, job=job)
    next(button for button in page.button if button.label == "Save").click().run()
    assert page.warning[0].value.startswith("Choose a cause")
    assert State(own_demo).history(f"attempt:demo/{key}") == []


def test_a_cause_that_the_evidence_does_not_name_is_shown_beside_it(
    open_page: Callable[..., AppTest], own_demo: Path
) -> None:
    job, key = _one(own_demo, BY_NODE)
    actions.annotate(own_demo, f"attempt:demo/{key}", "cause", "power", author="bo")
    page = open_page(own_demo, PAGE, job=job)
    assert any("the evidence names: " in caption.value for caption in page.caption)


def test_an_empty_store_says_which_commands_fill_it(
    open_page: Callable[..., AppTest], empty_store: Path
) -> None:
    page = open_page(empty_store, PAGE, job="1")
    assert not page.exception
    assert "faultline ingest" in page.code[0].value


def test_the_page_names_the_incident_of_the_attempt(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    store = Store.open(demo_store)
    ((incident_id, job_id),) = store.rows(
        """SELECT incident_id, any_value(job_id) FROM incident_members
           JOIN jobs ON attempt_key = key WHERE kind = 'failure' AND job_id IN (
             SELECT job_id FROM failures JOIN jobs USING (cluster, attempt_key)
             GROUP BY job_id HAVING count(*) = 1)
           GROUP BY ALL ORDER BY ALL LIMIT 1"""
    )
    store.close()
    page = open_page(demo_store, PAGE, job=job_id, cluster="demo")
    assert not page.exception
    assert any(f"Part of incident [{incident_id}](incident?" in one.value for one in page.markdown)


def test_a_traced_job_leads_to_its_trace_and_its_run(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    opened = Store.open(demo_store)
    ((trace, job, run),) = opened.rows(
        """SELECT traced.name, job_id, jobs.run_id FROM straggler_traces traced
           JOIN jobs USING (cluster, job_id) ORDER BY ALL LIMIT 1"""
    )
    opened.close()
    page = open_page(demo_store, PAGE, job=job, cluster="demo")
    assert not page.exception
    said = [line.value for line in page.markdown]
    (of_trace,) = (line for line in said if f"&trace={quote_plus(trace)}" in line)
    assert "](stragglers?" in of_trace
    assert "slowdown 1." in of_trace
    assert any("](ettr?" in line and f"run={run}" in line for line in said)
