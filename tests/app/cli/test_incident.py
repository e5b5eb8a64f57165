"""faultline incident and incidents: what they print, in every form, and its documents."""

from __future__ import annotations

import re
from contextlib import closing
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest

from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def _one(store: Path, condition: str) -> str:
    with closing(Store.open(store)) as opened:
        return str(opened.rows(f"SELECT incident_id FROM incidents WHERE {condition}")[0][0])


def test_json_says_who_acts_how_sure_and_on_what_evidence(
    faultline: Callable[..., Any], incident_store: Path
) -> None:
    name = _one(incident_store, "loop_failures > 0")
    found = faultline("incident", name, "--store", incident_store).json
    assert found["incident_id"] == name
    assert (found["lost_gpu_hours"], found["lost"]) == (None, None), "the ledger is not built"
    assert (found["cause"], found["domain"], found["n_jobs"]) == ("node_lost", "unknown", 1)
    assert {
        "suggested_owner",
        "owner",
        "action",
        "confidence",
        "start_at",
        "end_at",
        "nodes",
    } <= set(found)
    assert {each["source"] for each in found["evidence"]} == {"scheduler"}


def test_json_plays_the_incident_and_compares_it(
    faultline: Callable[..., Any], incident_store: Path
) -> None:
    name = _one(incident_store, "loop_failures > 0")
    found = faultline("incident", name, "--store", incident_store).json
    phases = {each["phase"]: each for each in found["replay"]["phases"]}
    assert phases["first event"]["from_at"] == "2026-01-05T00:50:00+00:00"
    assert (phases["spread"]["from_at"], phases["spread"]["says"]) == (
        None,
        "none, 2 nodes at once",
    )
    assert phases["preemptions"]["says"] == "no record says which job preempted which"
    assert phases["recovery"]["says"] == "no record"
    assert found["replay"]["recovery_hours"] is None
    assert [each["counts"] for each in found["replay"]["moments"][:3]] == [
        {"hit_job": 2}, {"failed": 1, "evidence": 1}, {"hit_job": 2},
    ]  # fmt: skip
    assert (found["similar"]["n"], found["similar"]["n_compared"]) == (0, 1)
    table = faultline("incident", name, "--store", incident_store, "--format", "table").out
    assert "No similar one in the 1 other incident of cluster c since 4 Jan 2026." in table
    text = faultline("incident", name, "--store", incident_store, "--as", "markdown").out
    assert "none, 2 nodes at once" in text
    assert "No similar one" in text


def test_a_similar_incident_has_its_reason_and_its_end(
    faultline: Callable[..., Any], demo_store: Path
) -> None:
    name = _one(
        demo_store,
        """nodes_named AND n_failures > 0 AND len(CAST(nodes AS JSON)::VARCHAR[]) = 1 AND nodes IN (
        SELECT nodes FROM incidents WHERE nodes_named GROUP BY nodes HAVING count(*) > 1)""",
    )
    found = faultline("incident", name, "--store", demo_store).json
    first = found["similar"]["incidents"][0]
    assert first["incident_id"] != name
    assert first["reason"].startswith(f"same node {found['nodes'][0]}")
    of_it = faultline("incident", first["incident_id"], "--store", demo_store).json
    assert first["recovery_hours"] == of_it["replay"]["recovery_hours"]
    assert first["summary"] == of_it["summary"]


def test_an_id_that_was_merged_answers_with_its_heir(
    faultline: Callable[..., Any], incident_store: Path
) -> None:
    old = _one(incident_store, "superseded_by IS NOT NULL")
    said = faultline("incident", old, "--store", incident_store)
    assert said.code == 0
    assert said.json["incident_id"] != old
    assert f"{old} was merged into" in said.err


def test_an_unknown_id_is_refused(refused: Callable[..., str], incident_store: Path) -> None:
    assert "is not in the store" in refused("incident", "nothing", "--store", incident_store)


def test_the_summary_counts_what_the_list_holds(
    faultline: Callable[..., Any], incident_store: Path
) -> None:
    everything = faultline("incidents", "--store", incident_store).json
    summary = faultline("incidents", "--store", incident_store, "--summary").json
    assert summary["n_incidents"] == len(everything) == 2
    hardware = faultline(
        "incidents", "--store", incident_store, "--summary", "--domain", "hardware"
    )
    assert hardware.json["n_incidents"] == 1
    assert hardware.json["n_crash_loops"] == 0


def test_signals_that_come_together_have_shares_with_intervals(
    faultline: Callable[..., Any], incident_store: Path
) -> None:
    found = faultline("incidents", "--store", incident_store, "--signals").json
    assert {(each["given"], *each["companions"]) for each in found} == {
        ("XID 48", "XID 79"),
        ("XID 79", "XID 48"),
    }
    assert found[0]["share"]["value"] == 1.0
    assert found[0]["share"]["lower"] < 0.1
    table = faultline("incidents", "--store", incident_store, "--signals", "--format", "table")
    assert "XID 48" in table.out


class _Page(HTMLParser):
    """Which tags a page holds, and what it would fetch."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.fetched += [value or "" for name, value in attrs if name in ("src", "href", "srcset")]


def test_the_page_holds_no_script_and_fetches_nothing(
    faultline: Callable[..., Any], incident_store: Path
) -> None:
    name = _one(incident_store, "n_events > 0 AND NOT retired")
    said = faultline("incident", name, "--store", incident_store, "--as", "html")
    assert said.code == 0
    page = _Page(said.out)
    assert "script" not in page.tags
    assert "b" not in page.tags
    assert page.fetched == []
    assert not re.search(r"url\((?!#)|@import", said.out)
    assert "svg" in page.tags
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in said.out


def test_hostile_lines_break_no_table_of_the_markdown(
    faultline: Callable[..., Any], incident_store: Path
) -> None:
    name = _one(incident_store, "n_events > 0 AND NOT retired")
    text = faultline("incident", name, "--store", incident_store, "--as", "markdown").out
    assert "GPU has fallen off the bus" in text
    assert "<script>" not in text.replace("\\<script", "")
    width = None
    for line in text.splitlines():
        if not line.startswith("|"):
            width = None
            continue
        cells = len(re.findall(r"(?<!\\)\|", line))
        width = cells if width is None else width
        assert cells == width, line
    assert not re.search(r"(?<!\\)``", text), "the log's fence would open a block of code"


@pytest.mark.slow
def test_both_documents_say_that_the_demo_is_synthetic(
    faultline: Callable[..., Any], demo_store: Path
) -> None:
    name = _one(demo_store, "n_jobs > 0")
    for form in ("html", "markdown"):
        said = faultline("incident", name, "--store", demo_store, "--as", form)
        assert "ynthetic" in said.out


@pytest.mark.slow
@pytest.mark.parametrize("condition", ["n_jobs = 0", "retired", "loop_failures > 0"])
def test_every_kind_of_incident_can_be_written(
    faultline: Callable[..., Any], incident_store: Path, tmp_path: Path, condition: str
) -> None:
    name = _one(incident_store, condition)
    options = ("--store", incident_store, "--out", tmp_path, "--kind", "incident")
    said = faultline("report", *options, "--incident", name, "--as", "html,md")
    assert said.code == 0
    assert [path.rpartition(".")[2] for path in said.json["files"]] == ["html", "md"]
    again = faultline("report", *options, "--incident", name, "--as", "md")
    assert again.json["content_sha256"] == said.json["content_sha256"]
