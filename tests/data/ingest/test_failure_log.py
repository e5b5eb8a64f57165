"""Logs of node failures and the mappings of their columns."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

from data.errors import SourceError
from data.ingest.reader import Batch, Options, Source
from data.ingest.readers.tables import failure_log
from data.ingest.readers.tables.failure_log import month_of

SHARED = Path(__file__).parents[4] / "shared" / "data"
LANL = SHARED / "lanl" / "LA-UR-05-7318-failure-data-1996-2005.csv"
PNNL = SHARED / "pnnl" / "pnnl_failures_until_2006-11.csv"
needs_shared = pytest.mark.skipif(not SHARED.exists(), reason="no ../shared/data here")

TEN_LINES = """
timezone = "Europe/Berlin"
time_format = ["%d.%m.%Y %H:%M", "iso"]
cluster = "hal"

[columns]
node = "host"
start = "down"
end = "up"
cause = "why"
text = "note"
"""
FEB_23 = datetime(2025, 2, 23, 15, 24, tzinfo=UTC)
LINE = "n1,23.02.2025 16:24,23.02.2025 17:54,GPU,lost"


def read(folder: Path, text: str, toml: str | None = TEN_LINES, **options: Any) -> Batch:
    path = folder / "failures.csv"
    path.write_text(text, encoding="utf-8", newline="")
    if toml is not None:
        (folder / "hal.toml").write_text(toml, encoding="utf-8")
        options.setdefault("mapping", str(folder / "hal.toml"))
    return read_file(path, **options)


def read_file(path: Path, **options: Any) -> Batch:
    source = Source(path, path.name, datetime(2025, 3, 1, tzinfo=UTC))
    batch = failure_log.read(source, Options(**options), duckdb.cursor())
    skipped = sum(batch.skipped_by_reason.values())
    assert batch.rows_read == batch.rows_kept + skipped + len(batch.rejected)
    return batch


def rows(batch: Batch, table: str = "node_failures") -> list[dict[str, Any]]:
    frame = batch.tables[table]
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


def csv(*lines: str, header: str = "host,down,up,why,note") -> str:
    return "\n".join([header, *lines, ""])


def test_a_site_maps_its_columns_in_ten_lines(tmp_path: Path) -> None:
    batch = read(tmp_path, csv(LINE))
    (row,) = rows(batch)
    assert row.pop("failure_key")
    assert row == {
        "cluster": "hal",
        "node": "n1",
        "hit": None,
        "start_at": FEB_23,
        "end_at": FEB_23 + timedelta(minutes=90),
        "repair_minutes": 90.0,
        "cause": "GPU",
        "subcause": None,
        "text": "lost",
        "source": "hal",
    }
    assert (batch.rows_read, batch.rows_kept, batch.clusters) == (1, 1, ("hal",))
    assert (batch.first_at, batch.last_at) == (FEB_23, FEB_23 + timedelta(minutes=90))
    assert batch.notices == []
    assert "nodes" not in batch.tables


def test_the_zone_given_by_the_caller_overrides_the_mapping(tmp_path: Path) -> None:
    assert read(tmp_path, csv(LINE), timezone="UTC").first_at == FEB_23 + timedelta(hours=1)
    by_site = read(tmp_path, csv(LINE), timezones={"hal": "UTC"})
    assert by_site.first_at == FEB_23 + timedelta(hours=1)
    unstated = read(tmp_path, csv(LINE), toml=TEN_LINES.replace("timezone", "#"))
    assert unstated.notices == ["times without a zone, read as UTC (pass --timezone): 2"]


def test_cluster_comes_from_the_option_else_the_mapping_else_the_default(tmp_path: Path) -> None:
    assert read(tmp_path, csv(LINE), cluster="rsc").clusters == ("rsc",)
    nameless = TEN_LINES.replace('cluster = "hal"', "")
    assert read(tmp_path, csv(LINE), toml=nameless, default_cluster="rsc").clusters == ("rsc",)
    column = nameless.replace("[columns]", 'cluster_prefix = "x-"\n[columns]\ncluster = "note"')
    lines = csv(LINE, LINE.replace("lost", ""))
    assert read(tmp_path, lines, toml=column, default_cluster="rsc").clusters == ("rsc", "x-lost")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("n2,31.02.2025 00:00,,GPU,x", "impossible time"),
        ("n2,tomorrow,,GPU,x", "impossible time"),
        ("n2,23.02.2025 16:24,later,GPU,x", "impossible time"),
        ("n2,,23.02.2025 16:24,GPU,x", "no start"),
        ("n2,23.02.2025 16:24,22.02.2025 16:24,GPU,x", "end before start"),
        ("n2,23.02.2025 16:24", "number of fields differs from the header"),
        ("n2,23.02.2025 16:24,,GPU,x,y", "number of fields differs from the header"),
    ],
)
def test_a_broken_record_is_rejected_with_the_line_where_it_begins(
    tmp_path: Path, line: str, reason: str
) -> None:
    two_lines = 'n1,23.02.2025 16:24,,GPU,"lost\nagain"'
    batch = read(tmp_path, csv(two_lines, "", line, LINE))
    (rejected,) = batch.rejected
    assert (rejected.line_no, rejected.reason, rejected.raw) == (5, reason, line)
    assert [row["text"] for row in rows(batch)] == ["lost again", "lost"]
    assert (batch.rows_read, batch.rows_kept) == (3, 2)


def test_a_quote_that_is_never_closed_costs_one_line_only(tmp_path: Path) -> None:
    broken = 'n1,23.02.2025 16:24,,GPU,"lost'
    batch = read(tmp_path, csv(LINE, broken, *[LINE] * 3000))
    assert batch.rows_kept == 3001
    assert [(r.line_no, r.raw) for r in batch.rejected] == [(3, broken)]
    assert len({row["failure_key"] for row in rows(batch)}) == 3001


def test_blank_records_of_a_spreadsheet_are_skipped(tmp_path: Path) -> None:
    batch = read(tmp_path, csv(LINE, ",,,,", " ,,,,"))
    assert (batch.rows_read, batch.skipped_by_reason) == (3, {"blank": 2})


def test_repair_minutes_are_the_sources_own_else_end_minus_start(tmp_path: Path) -> None:
    toml = TEN_LINES.replace('text = "note"', 'repair_minutes = "note"')
    lines = [LINE.replace("lost", minutes) for minutes in ("30", "", "0.5", "long", "-1", "nan")]
    batch = read(tmp_path, csv(*lines), toml=toml)
    assert [row["repair_minutes"] for row in rows(batch)] == [30.0, 90.0, 0.5]
    assert [record.reason for record in batch.rejected] == [
        "repair_minutes is no number from 0 on"
    ] * 3


def test_of_several_cause_columns_the_filled_one_is_the_cause(tmp_path: Path) -> None:
    toml = TEN_LINES.replace('"why"', '["why", "note"]').replace('text = "note"', "")
    lines = ["n1,2025-02-23,,GPU,", "n1,2025-02-23,,,fan", "n1,2025-02-23,,,"]
    batch = read(tmp_path, csv(*lines, "n1,2025-02-23,,GPU,fan"), toml=toml)
    assert [(row["cause"], row["subcause"]) for row in rows(batch)] == [
        ("why", "GPU"),
        ("note", "fan"),
        (None, None),
        (None, None),
    ]
    assert batch.notices == ["failures with several causes, their cause stays unknown: 1"]


def test_true_duplicates_stay_and_reading_again_gives_the_same_keys(tmp_path: Path) -> None:
    keys = [row["failure_key"] for row in rows(read(tmp_path, csv(LINE, LINE)))]
    assert len(set(keys)) == 2
    assert [row["failure_key"] for row in rows(read(tmp_path, csv(LINE, LINE)))] == keys


def test_key_columns_make_the_key(tmp_path: Path) -> None:
    toml = TEN_LINES.replace("[columns]", 'key = ["host", "down"]\n[columns]')
    closed, still_open = LINE, LINE.replace("23.02.2025 17:54", "")
    first = rows(read(tmp_path, csv(still_open), toml=toml))
    second = rows(read(tmp_path, csv(closed, LINE.replace("n1", "n2")), toml=toml))
    assert first[0]["failure_key"] == second[0]["failure_key"] != second[1]["failure_key"]


def test_a_failure_without_node_is_kept_and_said(tmp_path: Path) -> None:
    batch = read(tmp_path, csv(LINE.replace("n1", " ")))
    assert rows(batch)[0]["node"] is None
    assert batch.notices == ["failures kept that name no node, it stays unknown: 1"]


SHARED_PARTS = """
cluster = "hal"
[columns]
node = "HOST"
hit = ["RACK", "FS"]
start = "DOWN"
cause = "WHY"
"""


@pytest.mark.parametrize(
    ("cells", "node", "hit"),
    [
        ("n1,R1,", "n1", None),  # a node in a rack
        (",R1,", None, "RACK R1"),
        (" N/A ,,SCRATCH", None, "FS SCRATCH"),
        ("NULL,R1,scratch", None, "RACK R1, FS scratch"),
        ("n/a,unknown,", None, None),
        (",,", None, None),
    ],
)
def test_a_failure_of_what_nodes_share_says_what_it_hit(
    tmp_path: Path, cells: str, node: str | None, hit: str | None
) -> None:
    lines = csv(f"{cells},2025-02-23T00:00:00Z,power", header="HOST,RACK,FS,DOWN,WHY")
    batch = read(tmp_path, lines, toml=SHARED_PARTS)
    (row,) = rows(batch)
    assert (row["node"], row["hit"], len(batch.rejected)) == (node, hit, 0)


def test_a_log_without_nodes_is_of_its_cluster_or_of_what_its_mapping_says(tmp_path: Path) -> None:
    toml = 'cluster = "hal"\n[columns]\nstart = "down"\n'
    lines = csv("2025-02-23T00:00:00Z", "2025-02-23T00:00:00Z", header="down")
    first = rows(read(tmp_path, lines, toml=toml))
    assert [row["hit"] for row in first] == ["cluster"] * 2
    assert len({row["failure_key"] for row in first}) == 2, "true duplicates are kept"
    site = rows(read(tmp_path, lines, toml='hit = "site"\n' + toml))
    assert [row["hit"] for row in site] == ["site"] * 2
    assert not {row["failure_key"] for row in first} & {row["failure_key"] for row in site}


def test_parquet_gives_the_same_rows_as_csv(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "host": ["n1", "n2"],
            "down": pd.to_datetime(["2025-02-23 16:24", "2025-02-23 16:24"]),
            "up": pd.to_datetime(["2025-02-23 17:54", None]),
            "why": ["GPU", None],
            "note": ["lost", " "],
        }
    )
    path = tmp_path / "failures.parquet"
    frame.to_parquet(path)
    from_csv = read(tmp_path, csv(LINE, "n2,23.02.2025 16:24,,,"))
    from_parquet = read_file(path, mapping=str(tmp_path / "hal.toml"))
    assert rows(from_parquet) == rows(from_csv)
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(SourceError, match=r"broken.parquet: is broken Parquet"):
        read_file(broken, mapping=str(tmp_path / "hal.toml"))


def test_int96_of_parquet_are_instants_as_spark_writes_them(tmp_path: Path) -> None:
    frame = pd.DataFrame({"host": ["n1"], "down": [FEB_23], "up": None, "why": "GPU", "note": ""})
    frame["down"] = frame["down"].astype("datetime64[us, UTC]")
    path = tmp_path / "failures.parquet"
    frame.to_parquet(path, use_deprecated_int96_timestamps=True)
    (tmp_path / "hal.toml").write_text(TEN_LINES)
    (row,) = rows(read_file(path, mapping=str(tmp_path / "hal.toml")))
    assert row["start_at"] == FEB_23


def test_times_as_seconds_and_with_offset_are_read(tmp_path: Path) -> None:
    toml = TEN_LINES.replace('"iso"', '"iso", "epoch"')
    lines = ["n1,1740324240,,,", "n1,2025-02-23T10:24:00-05:00,,,"]
    assert {row["start_at"] for row in rows(read(tmp_path, csv(*lines), toml=toml))} == {FEB_23}


def test_another_delimiter_and_missing_header_can_be_stated(tmp_path: Path) -> None:
    expected = rows(read(tmp_path, csv(LINE)))
    semicolons = csv(LINE).replace(",", ";")
    assert rows(read(tmp_path, semicolons, delimiter=";")) == expected
    assert rows(read(tmp_path, semicolons, toml='delimiter = ";"' + TEN_LINES)) == expected
    columns = ("host", "down", "up", "why", "note")
    assert rows(read(tmp_path, LINE, columns=columns)) == expected


def test_a_record_that_names_no_cluster_is_of_the_one_of_the_mapping(tmp_path: Path) -> None:
    toml = 'cluster = "hal"\n[columns]\nnode = "host"\nstart = "down"\ncluster = "site"\n'
    text = "host,down,site\nn1,2025-02-23,eva\nn2,2025-02-23,\n"
    assert [row["cluster"] for row in rows(read(tmp_path, text, toml=toml))] == ["eva", "hal"]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "failures.csv: has no header"),
        ("\n\n", {}, "failures.csv: has no header"),
        ("host,up\n", {}, "no column 'down' of mapping hal, there are: host, up: correct"),
        ("a,b\n1,2\n", {"toml": None}, r"no shipped mapping \(lanl, pnnl\) fits .*a, b.*--mapping"),
        (
            "Date,What Failed\n",
            {"toml": None},
            "fits its columns: no column 'Hardware Identifier' of mapping pnnl",
        ),
        ("a,b\n", {"mapping": "lnl"}, r"lnl: no mapping of that name \(lanl, pnnl\) and no TOML"),
        ("a,b\n", {"mapping": "pnnl"}, "csv: no column 'Hardware Identifier' of mapping pnnl"),
        (csv(LINE), {"timezone": "Mars"}, "time zone 'Mars' is unknown"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(
    tmp_path: Path, text: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(SourceError, match=message) as error:
        read(tmp_path, text, **options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("columns = ", r"hal\.toml: is not TOML \(.*\): mend that place"),
        ('[columns]\nnode = "a"', "columns needs start: state it"),
        ('[columns]\nnod = "a"', r"columns\.nod is unknown: did you mean 'node'\?"),
        ('quality = "red"', "quality is unknown: there are cluster, timezone"),
        ('[nodes]\nsize = "a"', r"nodes\.size is unknown: there are count, first_seen"),
        ('columns = "a"', r"columns must be a section, got 'a': write \[columns\]"),
        ("[columns]\nnode = 3", r"columns\.node must be text, got 3"),
        ("[columns]\nnode = []", r"columns\.node must be text, got \[\]"),
        ('[columns]\nnode = ["a", "b"]', r"columns\.node must be text, got \['a', 'b'\]"),
        ('time_format = "%Q"\n[columns]\nnode = "a"\nstart = "b"', "'%Q': .*bad directive"),
    ],
)
def test_a_mistake_in_a_mapping_is_explained(toml: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        failure_log.LAYOUT.parsed("hal.toml", toml.encode())


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("5-Apr", (2005, 4)),
        ("Apr-05", (2005, 4)),
        ("12-Dec", (2012, 12)),
        ("Nov-96", (1996, 11)),
        ("Dec-99", (1999, 12)),
        ("current", None),
        ("before tracking", None),
        ("5-Foo", None),
        ("", None),
    ],
)
def test_months_mangled_by_a_spreadsheet_are_read(text: str, start: tuple[int, int] | None) -> None:
    month = month_of(text)
    assert (month and (month[0].year, month[0].month)) == start
    if month:
        assert timedelta(days=28) <= month[1] - month[0] <= timedelta(days=31)
        assert month[1].day == 1


NODES = TEN_LINES.replace('text = "note"', "") + '[nodes]\ncount = "note"\nfirst_seen = "why"\n'


def numbers(batch: Batch) -> list[int]:
    return [int(row["node"]) for row in rows(batch, "nodes")]


def test_nodes_that_never_failed_are_known_from_their_number(tmp_path: Path) -> None:
    batch = read(tmp_path, csv("2,2025-02-23,,5-Apr,4", "0,2025-02-23,,5-Apr,4"), toml=NODES)
    assert rows(batch, "nodes") == [
        {
            "cluster": "hal",
            "node": str(number),
            "first_seen_at": datetime(2005, 3, 31, 22, tzinfo=UTC),
            "last_seen_at": None,
            "source": "inventory",
        }
        for number in range(4)
    ]
    assert batch.notices == []


def test_service_dates_that_differ_between_nodes_are_not_lent_to_others(tmp_path: Path) -> None:
    batch = read(tmp_path, csv("0,2025-02-23,,5-Apr,3", "1,2025-02-23,,5-May,3"), toml=NODES)
    assert [row["first_seen_at"] is None for row in rows(batch, "nodes")] == [False, False, True]


@pytest.mark.parametrize(
    ("nodes", "known", "notice"),
    [
        (["1", "4"], [1, 2, 3, 4], "its 4 nodes are taken to be numbered from 1"),
        (["5", "7"], [4, 5, 6, 7], "its 4 nodes are taken to be numbered from 4"),
        (["6", "8"], [5, 6, 7, 8], "its 4 nodes are taken to be numbered from 5"),
        (["0", "9"], [0, 1, 2, 3], "node 9 lies beyond its 4 nodes"),
    ],
)
def test_a_numbering_that_does_not_fit_is_said(
    tmp_path: Path, nodes: list[str], known: list[int], notice: str
) -> None:
    batch = read(tmp_path, csv(*[f"{n},2025-02-23,,,4" for n in nodes]), toml=NODES)
    assert numbers(batch) == known
    assert batch.notices == [f"cluster hal: {notice}"]


@pytest.mark.parametrize(
    ("lines", "notice"),
    [
        (
            ["0,2025-02-23,,,4", "0,2025-02-23,,,5"],
            "number of nodes differs between records (4, 5)",
        ),
        (["0,2025-02-23,,,many"], "'many' is no number of nodes"),
        (["0,2025-02-23,,,99999999999"], "is no number of nodes"),
        (["n0,2025-02-23,,,4"], "nodes have names"),
    ],
)
def test_where_the_nodes_cannot_be_known_none_is_made_up(
    tmp_path: Path, lines: list[str], notice: str
) -> None:
    batch = read(tmp_path, csv(*lines), toml=NODES)
    assert "nodes" not in batch.tables
    assert batch.rows_kept == len(lines)
    assert notice in batch.notices[0]


@pytest.fixture(scope="module")
def lanl() -> Batch:
    return read_file(LANL)


@pytest.mark.slow
@needs_shared
def test_the_lanl_release_gives_its_published_answers(lanl: Batch) -> None:
    assert (lanl.rows_read, lanl.rows_kept, lanl.rejected) == (23_739, 23_739, [])
    frame = lanl.tables["node_failures"]
    assert isinstance(frame, pd.DataFrame)
    assert frame["failure_key"].nunique() == 23_739
    assert (frame["source"].unique().tolist(), frame["cause"].isna().sum()) == (["lanl"], 453)
    assert len(lanl.clusters) == 23
    for system, mean_gap_hours in ((18, 7.335), (19, 7.724), (20, 13.167)):
        starts = frame.loc[frame["cluster"] == f"lanl-{system}", "start_at"]
        gap = (starts.max() - starts.min()) / (len(starts) - 1)
        assert gap / timedelta(hours=1) == pytest.approx(mean_gap_hours, abs=0.0005)
    twenty = frame[frame["cluster"] == "lanl-20"]
    assert len(twenty) == 2_478
    assert twenty["repair_minutes"].mean() == pytest.approx(210.05, abs=0.005)
    assert twenty["repair_minutes"].median() == 75
    assert twenty["node"].value_counts().head(2).to_dict() == {"0": 118, "224": 49}


@needs_shared
def test_the_lanl_release_names_its_nodes_and_its_oddities(lanl: Batch) -> None:
    nodes = lanl.tables["nodes"]
    assert isinstance(nodes, pd.DataFrame)
    sizes = nodes.groupby("cluster").size()
    assert (sizes["lanl-18"], sizes["lanl-20"], sizes["lanl-2"]) == (1024, 512, 49)
    assert "lanl-17" not in sizes.index
    assert len(sizes) == 22
    fourteen = nodes.loc[nodes["cluster"] == "lanl-14", "node"].astype(int)
    assert (fourteen.min(), fourteen.max()) == (128, 255)
    text = " ".join(lanl.notices)
    assert "name no node, it stays unknown: 126" in text
    assert "cluster lanl-11: node 578 lies beyond its 256 nodes" in text
    frame = lanl.tables["node_failures"]
    assert isinstance(frame, pd.DataFrame)
    seen = frame.merge(nodes, on=["cluster", "node"])
    assert not (seen["start_at"] < seen["first_seen_at"]).any()
    assert not (seen["start_at"] >= seen["last_seen_at"]).any()


@needs_shared
def test_the_pnnl_log_is_read_without_the_action_taken() -> None:
    batch = read_file(PNNL)
    assert (batch.rows_read, batch.rows_kept, batch.rejected) == (4_225, 4_225, [])
    assert batch.clusters == ("pnnl",)
    first = rows(batch)[0]
    assert (first["node"], first["cause"]) == ("node 13", "DISK")
    assert first["text"] == "I/O error on Drive SDG"
    assert first["start_at"] == datetime(2003, 11, 29, 7, tzinfo=UTC)
    assert not batch.tables["node_failures"].isin(["REPLACE"]).any(axis=None)


@needs_shared
def test_a_mapping_is_a_small_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    for name in ("/dev/zero", str(tmp_path / "pipe.toml"), str(tmp_path)):
        with pytest.raises(SourceError, match="no TOML file that can be read"):
            failure_log.LAYOUT.mapping(name)
    large = tmp_path / "large.toml"
    large.write_text("#" * 1_000_001)
    with pytest.raises(SourceError, match="is larger than 1,000,000 bytes"):
        failure_log.LAYOUT.mapping(str(large))


def test_shipped_mappings_are_recognised_by_their_header() -> None:
    for path in (LANL, PNNL):
        assert failure_log.LAYOUT.sniff(path.read_text(encoding="utf-8")[:4096])
    assert not failure_log.LAYOUT.sniff("JobID|State\n")
    assert not failure_log.LAYOUT.sniff("")
