"""The audit: who did what, filtered; what cannot be taken down stops nothing that changes nothing."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from data import state
from data.audit import Audit, noted, query
from data.errors import StoreError
from data.state import State

HOUR = datetime(2026, 1, 2, 3, tzinfo=UTC)


@pytest.fixture
def audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Audit:
    """Three lines, an hour apart."""
    kept = Audit(tmp_path)
    told = [
        ("ann", "ingest", {"ingest_id": "i1", "path": "a.txt"}),
        ("bob", "query", {"sql": "SELECT 1"}),
        ("ann", "log out", {}),
    ]
    for hours, line in enumerate(told):
        at = (HOUR + timedelta(hours=hours)).isoformat(timespec="seconds")
        monkeypatch.setattr(state, "now", lambda at=at: at)
        kept.record(*line)
    return kept


def test_lines_come_newest_first_with_what_was_acted_on(audit: Audit) -> None:
    found = audit.entries()
    assert [(each.person, each.action, each.target) for each in found] == [
        ("ann", "log out", ""),
        ("bob", "query", "SELECT 1"),
        ("ann", "ingest", "a.txt"),
    ]
    assert found[2].made_at == "2026-01-02T03:00:00+00:00"
    assert found[2].detail == {"ingest_id": "i1", "path": "a.txt"}
    assert (audit.people(), audit.actions()) == (["ann", "bob"], ["ingest", "log out", "query"])


@pytest.mark.parametrize(
    ("asked", "actions"),
    [
        ({"person": "ann"}, ["log out", "ingest"]),
        ({"person": "ann", "action": "ingest"}, ["ingest"]),
        ({"from_at": HOUR + timedelta(hours=1)}, ["log out", "query"]),
        ({"to_at": HOUR + timedelta(hours=1)}, ["ingest"]),
        ({"from_at": (HOUR + timedelta(hours=2)).astimezone(timezone(timedelta(hours=9)))}, ["log out"]),
        ({"limit": 1}, ["log out"]),
        ({"person": "eve"}, []),
    ],
)  # fmt: skip
def test_lines_are_chosen_by_period_person_and_action(
    audit: Audit, asked: dict[str, object], actions: list[str]
) -> None:
    assert [each.action for each in audit.entries(**asked)] == actions  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sql", "kept"),
    [
        ("SELECT * FROM jobs WHERE user = 'ann''s' AND x = 1", "SELECT * FROM jobs WHERE user = '...' AND x = 1"),
        ("SELECT $$ann$$, $x$bob$$x$ FROM a", "SELECT '...', '...' FROM a"),
        ("SELECT 1 -- of ann\n, /* bob\n */ 2", "SELECT 1 , 2"),
        ("SELECT 'ann", "SELECT '...'"),
        ("SELECT $$ann", "SELECT '...'"),
        ("SELECT /* ann", "SELECT"),
        ("SELECT E'it\\'s ann'", "SELECT '...'"),
        ("SELECT \"it's\", 'ann'", "SELECT \"it's\", '...'"),
        ("x" * 300, "x" * 200 + "..."),
        ("", ""),
    ],
)  # fmt: skip
def test_texts_of_a_query_are_left_out(sql: str, kept: str) -> None:
    assert query(sql)["sql"] == kept


def test_two_queries_that_read_alike_have_two_hashes() -> None:
    ann, bob = query("SELECT 'ann'"), query("SELECT 'bob'")
    assert ann["sql"] == bob["sql"]
    assert ann["sha256"] != bob["sha256"]


def test_a_folder_without_a_store_keeps_none(tmp_path: Path) -> None:
    assert noted(tmp_path, "log in", {}) is None
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_taken_down_is_said_and_refused_only_where_it_changes_things(
    tmp_path: Path,
) -> None:
    (tmp_path / "state.sqlite").write_bytes(b"no database" * 100)
    assert "the audit does not say it" in (noted(tmp_path, "query", {}) or "")
    with pytest.raises(StoreError):
        State(tmp_path).annotate("node:c/n", "note", "x", author="ann")


def test_reading_it_changes_nothing(audit: Audit, tmp_path: Path) -> None:
    before = audit.entries()
    audit.people()
    assert audit.entries() == before
    assert noted(tmp_path, "log in", {}, person="eve") is None
    assert [each.person for each in audit.entries(limit=1)] == ["eve"]
