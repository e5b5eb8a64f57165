"""Tickets and facts about nodes: tables of a site's own, with and without a mapping."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from app.actions import ingest_files
from data.errors import SourceError
from data.filters import Selection
from data.ingest.formats.source import opened
from data.ingest.reader import Batch, Options
from data.ingest.readers import known_readers
from data.queries import failures
from data.store import Store
from tests.data.ingest.job_reading import rejected, takers

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Row = dict[str, Any]
NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)
TICKETS = "ticket_id,node,opened_at,closed_at,component,action,vendor,serial,text\n"
FACTS = "node,gpu,from_at,to_at,driver,serial\n"


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[Batch, list[Row]]]:
    """Reads a text by a reader: the batch, and its rows with None for what is unknown."""
    folder = tmp_path_factory.mktemp("tables")

    def read(source: str, content: str | bytes, **options: Any) -> tuple[Batch, list[Row]]:
        path = folder / "given.csv"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        with duckdb.cursor() as connection, opened(str(path), folder) as found:
            batch = known_readers()[source].read(found, Options(**options), connection)
        (frame,) = batch.tables.values()
        frame = frame.astype(object)  # type: ignore[union-attr]
        n_told = sum(batch.skipped_by_reason.values()) + batch.rejected.total
        assert batch.rows_read == batch.rows_kept + n_told
        return batch, frame.where(frame.notna(), None).to_dict("records")

    return read


def test_a_ticket_says_what_was_done(read: Any) -> None:
    text = (
        TICKETS + 'T1,gpu7,2024-03-01 13:00,2024-03-02T13:00:00+01:00,gpu,swapped,ACME,S1,"a, b"\n'
    )
    assert takers(text) == ["tickets"]
    _, (row,) = read("tickets", text, timezone="Europe/Berlin")
    assert row == {
        "cluster": "cluster", "ticket_id": "T1", "node": "gpu7", "opened_at": NOON,
        "closed_at": datetime(2024, 3, 2, 12, tzinfo=UTC), "component": "gpu", "action": "swapped",
        "vendor": "ACME", "serial": "S1", "text": "a, b",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("T2,n1,,,,,,,", "no opened_at"),
        ("T2,n1,noon,,,,,,", "impossible time"),
        ("T2,n1,0001-01-01T00:00:00+14:00,,,,,,", "impossible time"),
        ("T2,n1,2024-03-02,2024-03-01,,,,,", "closed before it was opened"),
        ("T2,n[2-1],1709294400,,,,,,", "host list has a descending range"),
        ("T2,n1", "number of fields differs from the header"),
    ],
)
def test_a_broken_ticket_is_rejected_beside_a_whole_one(read: Any, line: str, reason: str) -> None:
    whole = "T1,n1,1709294400,,NULL,,,,\r\n"
    batch, (row,) = read("tickets", "\ufeff" + TICKETS + f"{whole}{line}\n,,,,,,,,\n")
    assert rejected(batch) == [(3, reason)]
    assert (row["opened_at"], row["closed_at"]) == (NOON, None)
    assert batch.skipped_by_reason == {"blank": 1}


def test_tickets_of_several_nodes_of_none_and_without_numbers_stay_apart(read: Any) -> None:
    lines = ['T1,"n[1-2]",1709294400,,switch,,,,', "T2,,1709294400,,,,,,",
             ",n1,1709294400,,gpu,,,,", ",n1,1709294400,,gpu,,,,", ",n2,1709294400,,gpu,,,,"]  # fmt: skip
    batch, rows = read("tickets", TICKETS + "\n".join(lines))
    assert [(row["ticket_id"], row["node"]) for row in rows[:3]] == [
        ("T1/n1", "n1"), ("T1/n2", "n2"), ("T2", None),
    ]  # fmt: skip
    assert len({row["ticket_id"] for row in rows}) == 6
    assert [text.rpartition(": ")[2] for text in batch.notices] == ["3", "1"]
    closed, turned = lines[2].replace(",,gpu", ",1709294500,gpu"), lines[:2:-1]
    _, later = read("tickets", TICKETS + "\n".join([closed, *turned]))
    assert {row["ticket_id"] for row in later} == {row["ticket_id"] for row in rows[3:]}


def test_facts_stand_in_columns_or_as_key_and_value(read: Any) -> None:
    wide = FACTS + '"n[1-2]",,2024-03-01T12:00:00Z,,550.54,\nn1,0,1709294400,2024-03-05,,S1\n'
    long = (
        "node,gpu,from_at,to_at,key,value\nn1,,1709294400,,driver,550.54\n"
        "n2,,1709294400,,driver,550.54\nn1,0,1709294400,2024-03-05,serial,S1\n"
    )
    assert takers(wide) == takers(long) == ["node-facts"]
    (_, rows), (_, same) = read("node-facts", wide), read("node-facts", long)
    assert rows == same
    assert [(row["node"], row["gpu"], row["key"], row["value"]) for row in rows] == [
        ("n1", None, "driver", "550.54"), ("n2", None, "driver", "550.54"), ("n1", "0", "serial", "S1"),
    ]  # fmt: skip
    assert {row["from_at"] for row in rows} == {NOON}
    assert rows[2]["to_at"] == datetime(2024, 3, 5, tzinfo=UTC)


def test_a_fact_without_a_beginning_holds_from_at_or_from_an_unknown_time(read: Any) -> None:
    text = "node,driver,colour\nn1,550.54,red\nn2,,red\n"
    batch, (row,) = read("node-facts", text)
    assert row["from_at"] is None
    assert batch.skipped_by_reason == {"no fact": 1}
    assert batch.notices == [
        "columns that are no known fact, left out (name them by --mapping): colour",
        "facts that do not say since when, so that they weigh in nothing (pass --at): 1",
    ]
    batch, (row,) = read("node-facts", text, at=NOON)
    assert row["from_at"] == NOON
    assert len(batch.notices) == 1


def test_mappings_name_other_columns(read: Any, tmp_path: Path) -> None:
    mapping = tmp_path / "own.toml"
    mapping.write_text(
        'cluster = "hal"\ndelimiter = ";"\ntimezone = "Asia/Tokyo"\n'
        '[columns]\nnode = "Host"\nfrom_at = "Since"\n[facts]\ncolour = "Colour"\n'
    )
    _, (row,) = read(
        "node-facts", "Host;Since;Colour\nn1;2024-03-01T21:00;red\n", mapping=str(mapping)
    )
    assert (row["cluster"], row["from_at"], row["key"], row["value"]) == ("hal", NOON, "colour", "red")  # fmt: skip
    with pytest.raises(
        SourceError, match="no column 'Colour' of mapping own, there are: Host, Since"
    ):
        read("node-facts", "Host;Since\nn1;1\n", mapping=str(mapping))
    mapping.write_text('[facts]\ncolour = "Colour"\n')
    with pytest.raises(SourceError, match="facts is unknown: there are cluster, timezone"):
        read("tickets", TICKETS, mapping=str(mapping))
    with pytest.raises(SourceError, match="no column 'key'"):
        read("node-facts", "node,from_at\nn1,1\n")
    with pytest.raises(SourceError, match="no column 'opened_at'"):
        read("tickets", "ticket_id,node\nT1,n1\n")


@pytest.mark.slow
def test_the_store_shows_tickets_of_a_node_and_the_model_that_all_agree_on(tmp_path: Path) -> None:
    files = {
        "tickets": TICKETS + "T1,n1,1709294400,,gpu,swapped,ACME,S1,\nT2,n2,1709294400,,,,,,\n",
        "node-facts": "node,from_at,gpu_model\nn1,1709294400,h100\n",
        "node-inventory": "node,gpus,gpu_model,observed_at\nn1,8,H100,1709294400\nn2,8,,1709294400\n",
    }
    more = "cluster,node,from_at,gpu_model\nc,n2,1709294400,A100\nother,n3,1709294400,A100+H100\n"
    paths = {}
    for source, text in (files | {"more": more}).items():
        paths[source] = tmp_path / f"{source}.csv"
        paths[source].write_text(text)
    for source in files:
        for _ in range(2):  # a second time changes nothing
            results, _ = ingest_files(
                tmp_path / "s", source, [str(paths[source])], Options(cluster="c")
            )
        assert sum(results[0].tables.values()) == 0
    with closing(Store.open(tmp_path / "s")) as store:
        history = failures.node_history(store, "c", "n1", Selection())
        assert history[["kind", "what", "text"]].values.tolist() == [
            ["ticket", "gpu", "swapped: ACME, serial S1"]
        ]
        assert store.rows("SELECT gpu_model FROM clusters") == [("H100",)]
    ingest_files(tmp_path / "s", "node-facts", [str(paths["more"])], Options())
    with closing(Store.open(tmp_path / "s")) as store:
        assert store.rows("SELECT gpu_model FROM clusters ORDER BY cluster") == [(None,), (None,)]
