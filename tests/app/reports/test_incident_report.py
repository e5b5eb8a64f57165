"""An incident's report says what it leaves out, and what people decided."""

from __future__ import annotations

import shutil
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from app import actions
from app.actions import Options, build_ledger, ingest_files
from app.ask import of_store
from app.reports import incident, kinds
from data.filters import Selection
from data.store import Store
from tests.app.conftest import HEADER, LOOP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from app.reports.report import Report

SACCT = "JobID|Cluster|State|Submit|Start|End|NNodes|AllocTRES|NodeList\n" + "".join(
    f"{job}|c|FAILED|2026-01-0{job}T00:00:00|2026-01-0{job}T00:00:00|2026-01-0{job}T05:00:00|1"
    "|gres/gpu=8|n1\n"
    for job in range(1, 6)
)


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Five failed jobs, of which only the last has a log: 200 lines, a long one among them."""
    folder = tmp_path_factory.mktemp("logged")
    (folder / "sacct.txt").write_text(SACCT)
    lines = [f"step {n}" for n in range(199)]
    (folder / "slurm-5.out").write_text("\n".join([*lines, "x" * 500]) + "\n")
    for source, name in (("sacct", "sacct.txt"), ("job-log", "slurm-5.out")):
        ingest_files(folder / "store", source, [str(folder / name)], Options(cluster="c"))
    with closing(Store.open(folder / "store")) as store:
        yield store


@pytest.fixture
def verdicts(logged: Store) -> Callable[..., list[dict[Any, Any]]]:
    """Verdicts of the five; evidence names some lines of the last one's log."""

    def of(*named: int, jobs: int = 5) -> list[dict[Any, Any]]:
        rows = logged.frame(
            "SELECT cluster, attempt_key, job_id FROM jobs ORDER BY job_id DESC LIMIT $n",
            {"n": jobs},
        )
        key = [{"kind": "job_log", "key": f"slurm-5.out:{line}"} for line in named]
        rows["evidence"] = [key if job == "5" else [] for job in rows["job_id"]]
        return rows.sort_values("job_id").to_dict("records")

    return of


def test_a_log_that_told_something_is_quoted_however_late_its_job_failed(
    logged: Store, verdicts: Callable[..., list[dict[Any, Any]]]
) -> None:
    section = incident.log_section(of_store(logged), verdicts(100))
    (found,) = section.blocks
    assert found.title == "Log of job 5: slurm-5.out"
    assert [line.line_no for line in found.lines] == list(range(96, 105))
    assert [line.line_no for line in found.lines if line.counts] == [100]
    assert section.sentences == ("Looked at: the logs of 3 of 5 failed attempts.",)


def test_logs_that_were_not_looked_at_are_not_passed_over_in_silence(
    logged: Store, verdicts: Callable[..., list[dict[Any, Any]]]
) -> None:
    section = incident.log_section(of_store(logged), verdicts())
    assert section.blocks == ()
    assert section.sentences == (
        "Looked at: the logs of 3 of 5 failed attempts; none is in the store.",
    )
    assert incident.log_section(of_store(logged), verdicts(jobs=3)).sentences == ()


def test_lines_and_letters_that_are_cut_are_announced(
    logged: Store, verdicts: Callable[..., list[dict[Any, Any]]]
) -> None:
    (found,) = incident.log_section(of_store(logged), verdicts(*range(10, 190, 10))).blocks
    assert found.title == "Log of job 5: slurm-5.out (first 60 of 162 lines)"
    assert len(found.lines) == 60
    (found,) = incident.log_section(of_store(logged), verdicts(jobs=1)).blocks
    assert [line.line_no for line in found.lines] == list(range(189, 201))
    assert found.lines[-1].text == "x" * 399 + "…"


DECIDED = {
    "confirmed": (None, "A person confirmed the cause that the evidence names."),
    "another": ("nic", "A person decided the cause; the evidence names: {title}."),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", DECIDED.values(), ids=DECIDED)
def test_what_a_person_decided_stands_beside_the_evidence(
    incident_store: Path, tmp_path: Path, case: tuple[str | None, str]
) -> None:
    cause, said = case
    before, after = _decided(incident_store, tmp_path / "store", "loop_failures > 0", cause)
    title = next(headline.value for headline in before.headlines if headline.term.label == "Cause")
    assert not any("person" in note for note in before.notes)
    assert said.format(title=title) in after.notes


@pytest.mark.slow
def test_a_decision_where_no_evidence_names_a_cause_says_so(tmp_path: Path) -> None:
    loop = HEADER + LOOP.replace("NODE_FAIL", "FAILED").replace("|n1|", "||")
    (tmp_path / "sacct.txt").write_text(loop)
    ingest_files(tmp_path / "one", "sacct", [str(tmp_path / "sacct.txt")], Options())
    _, after = _decided(tmp_path / "one", tmp_path / "two", "cause = 'unknown'", "nic")
    assert after.notes == ("A person decided the cause; no evidence names one.",)


def _decided(source: Path, root: Path, which: str, cause: str | None) -> tuple[Report, Report]:
    """The report of one incident, and the one after a person has said its cause."""
    shutil.copytree(source, root)
    with closing(Store.open(root)) as store:
        ((name, derived), *_) = store.rows(
            f"SELECT incident_id, cause FROM incidents WHERE {which}"
        )
        before = kinds.report(store, "incident", about=name)
    actions.annotate(root, f"incident:{name}", "cause", cause or derived)
    with closing(Store.open(root)) as store:
        return before, kinds.report(store, "incident", about=name)


LOST = """\
JobID|Cluster|State|Submit|Start|End|NNodes|AllocTRES|NodeList|FailedNode
1|c|NODE_FAIL|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-05T05:00:00|1|gres/gpu=8|n1|n1
2|c|NODE_FAIL|2026-01-09T00:00:00|2026-01-09T00:00:00|2026-01-09T05:00:00|1||n1|n1
"""


def test_a_loss_that_is_not_wholly_known_is_a_lower_bound(tmp_path: Path) -> None:
    (tmp_path / "sacct.txt").write_text(LOST)
    ingest_files(tmp_path / "store", "sacct", [str(tmp_path / "sacct.txt")], Options())
    build_ledger(tmp_path / "store")
    with closing(Store.open(tmp_path / "store")) as store:
        said = " ".join(kinds.report(store, "node", about="n1").summary)
        assert "2 incidents of the period name this node, with at least 4" in said
        assert "GPU-hours lost on all nodes hit" in said
        later = Selection(from_at=datetime(2026, 1, 8, tzinfo=UTC))
        said = " ".join(kinds.report(store, "node", later, about="n1").summary)
        assert "1 incident of the period names this node, with unknown GPU-hours lost" in said
