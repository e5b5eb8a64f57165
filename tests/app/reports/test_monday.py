"""The Monday card: one page that says what Overview says, what changed, and what to do first."""

from __future__ import annotations

import io
import json
import re
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from pypdf import PdfReader

from app.actions import Options, annotate, build_ledger, ingest_files
from app.answers.fleet import changed, overview
from app.answers.fleet.choices import last_whole, whole_weeks
from app.ask import of_store
from app.reports import kinds
from app.reports.report import RESTS_ON, TO_DO
from app.show import files, html, pdf, slack
from app.words.addresses import Place
from app.words.plain import one_line
from data.filters import Selection
from data.store import Store
from tests.app.reports.conftest import NOW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from app.reports.report import Report

HEADER = "JobID|Cluster|User|Partition|State|Submit|Start|End|NNodes|AllocTRES|NodeList"
FIRST = date(2026, 11, 9)
"""Monday of week 46; the records end in the morning of the Monday after week 47."""
FIRST_AT = datetime(2026, 11, 8, 23, tzinfo=UTC)
"""Its midnight in Berlin."""
LONG = "gpu-node-of-the-long-names-in-hall-two-rack-seventeen-slot"
SITE = """\
[reports]
address = "https://faultline.example.org/ops"
[cluster.c]
timezone = "Europe/Berlin"
gpus_per_node = 8
gpu_hour_price = 2.0
currency = "EUR"
"""


def _jobs() -> Iterator[str]:
    """Two weeks of a small fleet: nodes are lost in the first, memory runs out in the second."""
    ids = iter(range(1, 1000))

    def job(state: str, begin: datetime, hours: float, *, user: str, node: str) -> str:
        end = begin + timedelta(hours=hours)
        return (
            f"{next(ids)}|c|{user}|gpu|{state}|{begin.isoformat()}|{begin.isoformat()}|"
            f"{end.isoformat()}|1|gres/gpu=8|{node}"
        )

    for day in range(14):
        midnight = datetime.combine(FIRST, datetime.min.time()) + timedelta(days=day)
        for node in range(8):
            yield job("COMPLETED", midnight, 24, user="ann", node=f"{LONG}-{node}")
        for turn in range(2):
            begin = midnight + timedelta(hours=8 * turn)
            state = "NODE_FAIL" if day < 7 else "OUT_OF_MEMORY"
            yield job(state, begin, 4, user=f"u{turn}_", node=f"{LONG}-{8 + turn}")
    for _ in range(25):  # in no incident
        begin = datetime(2026, 11, 18, 12)  # noqa: DTZ001
        yield job("OUT_OF_MEMORY", begin, 2, user="zoe_k", node="n1")
    yield job("COMPLETED", datetime(2026, 11, 23), 6, user="ann", node="n1")  # noqa: DTZ001


def _events() -> Iterator[str]:
    """A node goes down on each day of the first week; in the second nobody asks."""
    for day in range(7):
        at = datetime.combine(FIRST, datetime.min.time()) + timedelta(days=day, hours=2)
        end = at + timedelta(hours=1)
        yield f"c|n9|{at.isoformat()}|{end.isoformat()}|DOWN|checked *now* <!here>|root(0)"


@pytest.fixture(scope="module")
def weeks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Weeks 46 and 47 of 2026 in Berlin, with ledger, prices and an address."""
    folder = tmp_path_factory.mktemp("weeks")
    root = folder / "store"
    root.mkdir()
    (root / "site.toml").write_text(SITE)
    events = "ClusterName|NodeName|TimeStart|TimeEnd|State|Reason|User"
    for source, header, lines in (
        ("sacct", HEADER, _jobs()),
        ("sacctmgr-events", events, _events()),
    ):
        (folder / source).write_text("\n".join([header, *lines]) + "\n")
        ingest_files(root, source, [str(folder / source)], Options(cluster="c"))
    build_ledger(root)
    with closing(Store.open(root)) as store:
        yield store


@pytest.fixture(scope="module")
def card(weeks: Store) -> Report:
    """The card of week 47."""
    return kinds.report(weeks, "monday", now=NOW)


@pytest.fixture(scope="module")
def whole(weeks: Store) -> Report:
    """The card of all that is recorded since the first week."""
    return kinds.report(weeks, "monday", Selection(from_at=FIRST_AT), now=NOW)


def _texts(content: bytes) -> list[str]:
    return [one_line(page.extract_text()) for page in PdfReader(io.BytesIO(content)).pages]


@pytest.mark.slow
def test_it_is_of_the_last_whole_week_of_the_cluster_and_its_files_say_so(
    weeks: Store, card: Report
) -> None:
    assert card.period == "Week 47, 16-22 November 2026 (Europe/Berlin)"
    assert card.file_stem == "faultline-c-2026-W47-monday"
    from_at, to_at = last_whole(weeks, "week", None)
    assert (from_at.isoformat(), to_at.isoformat()) == (
        "2026-11-15T23:00:00+00:00",
        "2026-11-22T23:00:00+00:00",
    )
    offered = whole_weeks(weeks, "c")
    assert [each.file_part for each in offered] == ["2026-W47", "2026-W46"]


def test_it_says_what_overview_says(weeks: Store, card: Report) -> None:
    from_at, to_at = last_whole(weeks, "week", None)
    shown = overview.answer(of_store(weeks), Selection(from_at=from_at, to_at=to_at))
    assert card.answer == shown.sentence
    assert [(h.term.label, h.value, h.interval) for h in card.headlines] == [
        (h.term.label, h.value, h.interval) for h in shown.numbers
    ]


@pytest.mark.slow
def test_what_changed_is_known(weeks: Store, card: Report) -> None:
    part = card.sections[1]
    (table,) = card.tables[1:]
    rows: dict[str, Any] = {row[0]: row[1:] for row in table.values}
    assert rows["Failures per 1,000 node-days"][2] == "fell"
    assert rows["MTTF, 8 GPUs"][0].startswith("at least ")
    assert rows["MTTF, 8 GPUs"][2] == "rose", "as the rate of which it is the inverse fell"
    assert rows["Incidents that began"] == ("0", "14", "14 fewer")
    said = " ".join(part.sentences)
    assert "Causes that rose: " in said
    assert re.search(r"Causes that rose: [^.]*emory[^.]* \(\d+, 0 before\)", said)
    assert re.search(r"Causes that fell: Node lost[^.]* \(0, 14 before\)", said)
    assert "Fell silent: node_events of c." in said
    week_before = kinds.report(weeks, "monday", changed.preceding(_of(card)), now=NOW)
    assert week_before.period.startswith("Week 46, 9-15 November 2026")
    assert "Causes are not compared: nothing ran in the week before." in " ".join(
        week_before.sections[1].sentences
    )
    assert re.fullmatch(
        r"Failures lost 0 to .* GPU-hours, as attempts before a requeue are missing: "
        r".*most by Node lost.* That is [\d,.]+ EUR of the attempts recorded\.",
        week_before.summary[0],
    )


def test_a_week_in_which_nothing_ran_is_compared_with_nothing(weeks: Store) -> None:
    begin = datetime(2026, 11, 23, 23, tzinfo=UTC)
    empty = Selection(from_at=begin, to_at=begin + timedelta(days=7))
    found = changed.answer(of_store(weeks), empty)
    rows: dict[str, Any] = {row[0]: row[1:] for row in found.table("changed").values}
    rate = rows["Failures per 1,000 node-days"]
    assert (rate[0], rate[2]) == ("unknown", "not known")
    assert rate[1] != "not known"
    assert rows["Incidents that began"][2] == "not known"
    assert found.notes[0] == "Causes are not compared: no job is known to have run."
    open_end = changed.answer(of_store(weeks), replace(empty, from_at=FIRST_AT, to_at=None))
    assert open_end.notes[0] == "Causes are not compared: no period of equal length came before."


def _of(card: Report) -> Selection:
    return Selection(from_at=card.during.from_at, to_at=card.during.to_at)


def test_incidents_said_to_be_resolved_within_the_period_are_counted(weeks: Store) -> None:
    rows = weeks.rows("SELECT incident_id FROM incidents WHERE NOT retired ORDER BY start_at")
    made = [annotate(weeks.root, f"incident:{row[0]}", "status", "resolved") for row in rows[:2]]
    at = datetime.fromisoformat(made[0].made_at)
    around = Selection(from_at=at - timedelta(hours=1), to_at=at + timedelta(hours=1))
    before = replace(around, from_at=FIRST_AT, to_at=FIRST_AT + timedelta(days=7))
    with closing(Store.open(weeks.root)) as told:
        assert changed.incidents_of(told, around).resolved == 2
        assert changed.incidents_of(told, before) == changed.Incidents(14, 0, 12)


@pytest.mark.slow
def test_it_is_one_page_whatever_stands_on_it(
    card: Report,
    whole: Report,
    awkward: Store,
    empty_store: Path,
    written: Callable[[str, str], bytes],
) -> None:
    assert len(whole.tables[0]) == 3
    crowded = replace(
        whole,
        title=f"Monday card: {LONG * 3}",
        notes=("A note without which the numbers would be misread, of some length. " * 4,) * 4,
        summary=whole.summary * 3,
        missing=(LONG,) * 12,
    )
    with closing(Store.open(empty_store)) as store:
        nothing = kinds.report(store, "monday", now=NOW)
    assert nothing.answer.startswith("How often the fleet fails cannot be judged")
    assert nothing.file_stem == "faultline-all-time-monday"
    bare = kinds.report(awkward, "monday", now=NOW)
    assert len(_texts(written("monday", "pdf"))) == 1
    for report in (card, crowded, nothing, bare):
        (text,) = _texts(pdf.render(report))
        assert "Page 1 of 1" in text
        for row in report.tables[0].values:
            assert re.sub(r"\s", "", str(row[0])) in re.sub(r"\s", "", text)


@pytest.mark.slow
def test_rows_and_the_page_lead_to_the_dashboard(weeks: Store, whole: Report) -> None:
    asked = "period=custom&from=2026-11-09T00%3A00"
    base = "https://faultline.example.org/ops"
    page = html.render(whole)
    assert f'href="{base}/data?{asked}&cluster=c"'.replace("&", "&amp;") in page
    assert f'href="{base}/failures?cluster=c&period=custom'.replace("&", "&amp;") in page
    assert f"<{base}/?{asked}&cluster=c|Open the dashboard>".replace("&", "&amp;") in _slack(whole)
    annotations = PdfReader(io.BytesIO(pdf.render(whole))).pages[0]["/Annots"]
    assert f"{base}/data?{asked}" in " ".join(
        str(each.get_object()["/A"]["/URI"]) for each in annotations
    )


def _slack(report: Report) -> str:
    """The texts of a message."""
    message = json.loads(slack.render(report))
    assert message["text"]
    for block in message["blocks"]:
        assert block["text"] | {"text": ""} == {"type": "mrkdwn", "text": "", "verbatim": True}
        assert 0 < len(block["text"]["text"]) <= slack.LONGEST
    assert len(message["blocks"]) <= 50
    return "\n".join(block["text"]["text"] for block in message["blocks"])


def test_what_is_to_do_leads_to_the_four_weeks_by_which_it_was_found(card: Report) -> None:
    table, told = card.tables[0], card.sections[0].sentences
    assert told == ("Found by the 28 days that end with this week.",)
    every = [row[0] for row in table.linked(card.dashboard)]
    assert every[0].startswith("https://faultline.example.org/ops/")
    assert [each for each in every if "from=2026-10-26T00%3A00&to=2026-11-23T00%3A00" in each]
    assert not [each for each in every if "from=2026-11-16" in each], "the week alone"


def test_an_incident_of_a_moment_leads_to_the_days_around_it(weeks: Store) -> None:
    one = kinds.report(weeks, "incident", about="latest")
    assert one.during.from_at is not None
    assert one.dashboard is not None
    (begun,) = re.findall("from=(20..-..-..)", one.dashboard.address(Place("node", {"node": "n9"})))
    local = one.during.from_at.astimezone(ZoneInfo("Europe/Berlin"))
    assert date.fromisoformat(begun) == local.date() - timedelta(days=7)


@pytest.mark.slow
def test_records_that_begin_in_the_week_or_end_in_it_are_said_to(weeks: Store) -> None:
    def notes(from_at: datetime) -> list[str]:
        selection = Selection(from_at=from_at, to_at=from_at + timedelta(days=7))
        notes = kinds.report(weeks, "monday", selection, now=NOW).notes
        return [note for note in notes if note.startswith("The records ")]

    assert notes(FIRST_AT - timedelta(days=3)) == [
        "The records begin at 8 Nov 2026 23:00 UTC: what was before is not known."
    ]
    assert notes(FIRST_AT + timedelta(days=14)) == [
        "The records end at 23 Nov 2026 05:00 UTC: what came after is not known."
    ]
    assert notes(FIRST_AT + timedelta(days=7)) == []


def test_a_message_for_slack_is_short_and_has_no_table(card: Report) -> None:
    text = _slack(card)
    assert f"*{card.answer}*" in text
    assert "*Do this now*" in text
    assert not re.search(r"^\||^#|\*\*|\]\(", text, re.MULTILINE)
    assert len(text) < 4000


def test_what_records_say_calls_nobody_in_slack(card: Report) -> None:
    hostile = replace(card, answer="<!channel> *now* <https://x.example|here> & `rm` ~a~ gpu_1")
    text = _slack(hostile)
    assert "<!channel>" not in text
    assert "<https://x.example" not in text
    assert "gpu_1" in text
    assert not re.search(r"(?<!\u200b)\*now\*", text)
    noted = _slack(replace(card, notes=("`faultline ledger` builds it; ```x```.",)))
    assert "`faultline ledger` builds" in noted, "a command that is copied runs"
    assert "``" not in noted
    long = replace(card, summary=("word " * 3000,) * 3)
    assert "…" in _slack(long)


def test_a_longer_report_is_told_by_its_head_in_slack(reports: dict[str, Report]) -> None:
    text = _slack(reports["fleet"])
    assert reports["fleet"].answer in text
    assert "What this rests on" not in text
    assert len(text) < 6000


@pytest.mark.slow
def test_a_card_without_names_names_nobody(weeks: Store, card: Report) -> None:
    assert "25 failures of user zoe_k within" in html.render(card)
    hidden = html.render(kinds.report(weeks, "monday", _of(card), redact=True, now=NOW))
    assert "zoe_k" not in hidden
    assert re.search(r"25 failures of user user-[a-z2-7]{10} within", hidden)
    assert "https://" not in hidden


@pytest.mark.slow
def test_the_same_card_has_the_same_hash(weeks: Store, card: Report) -> None:
    again = kinds.report(weeks, "monday", _of(card), now=NOW)
    assert again.content_sha256 == card.content_sha256
    assert files.name(card, "slack") == "faultline-c-2026-W47-monday.slack.json"


@pytest.mark.slow
def test_a_week_in_which_nobody_looked_has_no_records_and_no_number(weeks: Store) -> None:
    at = datetime(2027, 1, 4, tzinfo=UTC)
    later = Selection(from_at=at, to_at=at + timedelta(days=7))
    for kind in ("monday", "fleet"):
        made = kinds.report(weeks, kind, later, now=NOW)
        assert "has no records: those of the store end at " in made.answer
        assert not made.headlines
        assert {part.title for part in made.sections} <= {TO_DO, RESTS_ON}
