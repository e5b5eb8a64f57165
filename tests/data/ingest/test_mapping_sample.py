"""A mapping is guessed, tried on a file's beginning, and written as the readers take it."""

from __future__ import annotations

import gzip
import tomllib

import pytest

from data.errors import SourceError
from data.ingest import mapping_sample
from data.ingest.option_use import KNOWN_BY
from data.ingest.reader import Options

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
    taken = mapping_sample.sample("mine.csv", FILES[source].encode(), options)
    toml = mapping_sample.written(source, mapping_sample.guessed(source, taken.header), ";")
    found = mapping_sample.preview(source, taken, toml, options)
    assert (found.n_records, found.n_kept, found.n_rejected) == (2, 1, 1)
    assert [row.raw for row in found.rejected] == FILES[source].splitlines()[-1:]
    assert len(found.rows) == 1
    assert all(each.meaning for each in mapping_sample.fields(source))


def test_every_source_that_takes_a_mapping_has_its_fields() -> None:
    assert mapping_sample.mapped_sources() == {*KNOWN_BY["mapping"]}


def test_only_the_first_records_are_read_however_long_the_file_is() -> None:
    content = b"node,gpus\n" + b'n1,"8"\n' * 200_000
    taken = mapping_sample.sample("long.csv", content[: mapping_sample.SAMPLE_BYTES], Options())
    assert taken.content.count(b"\n") == 1_001


def test_names_of_columns_survive_the_writing() -> None:
    odd = 'a "quoted" \\ \x7f ü 😀'
    text = mapping_sample.written("node-facts", {"node": odd, "driver": "Treiber"}, ";")
    read = tomllib.loads(text)
    assert read == {"delimiter": ";", "columns": {"node": odd}, "facts": {"driver": "Treiber"}}


def test_a_packed_file_is_refused_in_words() -> None:
    with pytest.raises(SourceError, match=r"a\.gz: columns are matched for plain CSV: unpack it"):
        mapping_sample.sample("a.gz", gzip.compress(b"node,gpus\nn1,8\n"), Options())
