"""A mapping is guessed, tried on a file's beginning, and written as the readers take it."""

from __future__ import annotations

import gzip
import io
import tomllib
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from data.errors import SourceError
from data.ingest.reader import Options
from data.ingest.readers import known_by
from data.ingest.readers.tables import mapping_sample
from data.ingest.readers.tables.mapping_sample import Chosen

if TYPE_CHECKING:
    from pathlib import Path

FILES = {
    "tickets": "Ticket;Host;Opened;Closed\n7;n1;2026-01-01 10:00;\n8;n2;someday;\n",
    "node-facts": "Host;Since;Driver\nn1;2026-01-01;550.1\nn2;someday;550.2\n",
    "node-inventory": "Hostname;GPU count\nn1;8\nn2;many\n",
    "job-table": "Job ID;Status;Queued;Start time\n1;failed;2026-01-01T00:00:00;2026-01-01T01:00:00"
    "\n2;failed;someday;\n",
    "failure-log": "host;down;why\nn1;2026-01-01 10:00;gpu\nn2;someday;gpu\n",
}


@pytest.mark.parametrize("source", FILES)
def test_the_columns_of_each_source_are_guessed_and_a_bad_record_is_told(source: str) -> None:
    options = Options(delimiter=";", timezone="UTC")
    taken = mapping_sample.sample("mine.csv", io.BytesIO(FILES[source].encode()), options)
    guessed = Chosen(mapping_sample.guessed(source, taken.header))
    toml = mapping_sample.written(source, guessed, taken.header, ";")
    found = mapping_sample.preview(source, taken, toml, options)
    assert (found.n_records, found.n_kept, found.n_rejected) == (2, 1, 1)
    assert [row.raw for row in found.rejected] == FILES[source].splitlines()[-1:]
    assert len(found.rows) == 1
    assert all(each.meaning for each in mapping_sample.fields(source))


def test_every_source_that_takes_a_mapping_has_its_fields() -> None:
    assert mapping_sample.mapped_sources() == {*known_by()["mapping"]}


def test_only_the_first_records_are_read_however_long_the_file_is() -> None:
    content = b"node,gpus\n" + b'n1,"8"\n' * 200_000
    taken = mapping_sample.sample("long.csv", io.BytesIO(content), Options())
    assert taken.content.count(b"\n") == 1_001


def test_names_of_columns_survive_the_writing() -> None:
    odd = 'a "quoted" \\ \x7f ü 😀'
    chosen = Chosen({"node": odd, "driver": "Treiber"})
    text = mapping_sample.written("node-facts", chosen, (odd, "Treiber"), ";")
    read = tomllib.loads(text)
    assert read == {"delimiter": ";", "columns": {"node": odd}, "facts": {"driver": "Treiber"}}


def test_a_packed_file_is_refused_in_words() -> None:
    with pytest.raises(SourceError, match=r"a\.gz: columns are matched in what is not packed"):
        mapping_sample.sample("a.gz", io.BytesIO(gzip.compress(b"node,gpus\nn1,8\n")), Options())


def read(source: str, table: str | bytes, chosen: Chosen) -> mapping_sample.Preview:
    """What the mapping that was chosen makes of a table."""
    content = io.BytesIO(table.encode() if isinstance(table, str) else table)
    taken = mapping_sample.sample("mine", content, Options(timezone="UTC"))
    toml = mapping_sample.written(source, chosen, taken.header)
    return mapping_sample.preview(source, taken, toml, Options(timezone="UTC"))


COLUMNS = {"job_id": "id", "state": "outcome", "end_at": "ended"}
JOBS = "id,outcome,ended,user,n_gpus\n1,ok,{at},Berlin,4\n2,bad,{at},Rome,8\n"


@pytest.mark.parametrize(
    ("written", "time_format"),
    [("31.01.2026 12:00", "%d.%m.%Y %H:%M"), ("1769860800", "epoch"), ("2026-01-31 12:00", None)],
)
def test_times_are_read_as_was_chosen_and_words_for_states_translated(
    written: str, time_format: str | None
) -> None:
    chosen = Chosen(COLUMNS | {"n_gpus": "n_gpus"}, time_format, {"ok": "COMPLETED"})
    found = read("job-table", JOBS.format(at=written), chosen)
    assert (found.n_kept, found.n_rejected) == (1, 1)  # nobody said what bad means
    assert found.rows["state"].tolist() == ["COMPLETED"]
    assert found.rows["end_at"].tolist() == [pd.Timestamp("2026-01-31 12:00", tz="UTC")]
    assert "user" not in found.rows.columns  # a column is called so, and holds something else
    taken = mapping_sample.sample("mine", io.BytesIO(JOBS.encode()), Options())
    assert mapping_sample.foreign_states(taken, "outcome", Options()) == ["ok", "bad"]


@pytest.mark.parametrize("source", ["tickets", "node-facts", "node-inventory"])
def test_each_table_takes_a_pattern_of_times_and_leaves_out_what_is_not_meant(source: str) -> None:
    times = {"tickets": "opened_at", "node-facts": "from_at", "node-inventory": "observed_at"}
    own, foreign = times[source], {"tickets": "vendor"}.get(source, "rack")
    table = f"node,driver,{foreign},{own}\nn1,550,Rome,31.01.2026 12:00\n"
    chosen = Chosen({"node": "node", "driver": "driver", own: own}, "%d.%m.%Y %H:%M")
    if source == "tickets":
        del chosen.columns["driver"]
    found = read(source, table, chosen)
    assert (found.n_kept, found.n_rejected) == (1, 0)
    assert "Rome" not in found.rows.astype(str).to_numpy()
    assert found.rows[own].tolist() == [pd.Timestamp("2026-01-31 12:00", tz="UTC")]


TICKETS = Chosen({name: name for name in ("node", "opened_at", "component")})


def test_what_a_table_does_not_say_is_told_with_what_stays_unknown() -> None:
    found = read("tickets", "node,opened_at,component\nn1,2026-01-31,\n", TICKETS)
    assert found.notices[-2:] == (
        "no closed_at in any of 1 rows: when repairs ended stays unknown",
        "no component or text in any of 1 rows: what was repaired stays unknown",
    )
    jobs = read(
        "job-table", JOBS.format(at="2026-01-31 12:00"), Chosen(COLUMNS | {"n_gpus": "n_gpus"})
    )
    told = {text.partition(":")[0] for text in jobs.notices}
    assert {"no start_at", "no n_nodes", "no node_list", "no user"} <= told
    assert not {"no end_at", "no n_gpus", "no SubmitLine"} & told


def test_parquet_is_matched_as_it_is(tmp_path: Path) -> None:
    times = [datetime(2026, 1, 31, 12, tzinfo=UTC), None]
    frame = pd.DataFrame({"Host": ["n1"] * 2_000, "Begun": times * 1_000})
    frame.to_parquet(tmp_path / "tickets")
    chosen = Chosen({"node": "Host", "opened_at": "Begun"})
    found = read("tickets", (tmp_path / "tickets").read_bytes(), chosen)
    assert (found.n_records, found.n_kept, found.n_rejected) == (1_000, 500, 500)
    with pytest.raises(SourceError, match="mine: is broken Parquet"):
        read("tickets", (tmp_path / "tickets").read_bytes()[:1_000], chosen)


@pytest.mark.parametrize(
    ("toml", "told"),
    [
        ("[columns]\nnode = false", r"columns\.node must be text, got False: name a column"),
        ("cluster = false", "cluster must be text, got False: quote it"),
        ("time_format = 7", "time_format must be text or a list of texts, got 7"),
        ("time_format = '%Q'", "time_format '%Q': 'Q' is a bad directive"),
    ],
)
def test_a_mistake_of_a_mapping_is_told(toml: str, told: str) -> None:
    taken = mapping_sample.sample("mine", io.BytesIO(b"node,gpus\nn1,8\n"), Options())
    with pytest.raises(SourceError, match=told):
        mapping_sample.preview("node-inventory", taken, toml, Options())
