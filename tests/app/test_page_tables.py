"""Tables: search, and downloads that say what they hold."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any

import pandas as pd
import pytest
from streamlit.elements.lib.pandas_styler_utils import marshall_styler
from streamlit.proto.ArrowData_pb2 import ArrowData

from app.answers.content import Table
from app.show import table
from app.show.scope import Scope
from app.words.cells import Column
from data.filters import Selection

ROWS = pd.DataFrame(
    {
        "node": ["n001", "n002", None],
        "reason": ["Xid 79: GPU lost", "maintenance", "xid 48"],
        "n": [1, 2, 3],
    }
)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [("", 3), ("  ", 3), ("XID", 2), ("xid n001", 1), ("nothing like it", 0), ("(", 0), ("2", 1)],
)
def test_search_finds_rows_that_hold_every_word(wanted: str, found: int) -> None:
    assert len(table.matching(ROWS, wanted)) == found


def test_search_of_an_empty_table_is_empty() -> None:
    assert table.matching(ROWS.iloc[:0], "xid").empty


def _scope(*, synthetic: bool) -> Scope:
    selection = Selection(
        cluster="c",
        from_at=datetime(2026, 1, 1, tzinfo=UTC),
        to_at=datetime(2026, 2, 1, tzinfo=UTC),
        min_gpus=129,
    )
    return Scope(
        selection, timezone="UTC", synthetic=synthetic, snapshot=7, mode="light", empty=False
    )


def test_a_download_says_on_every_row_what_it_was_filtered_by() -> None:
    text = _scope(synthetic=True).csv(ROWS)
    stated = pd.read_csv(io.StringIO(text))["faultline_selection"].unique()
    period, counted = "1 Jan 2026 00:00 to 1 Feb 2026 00:00 UTC", "jobs of 129 GPUs and more"
    assert list(stated) == [f"c · {period} · rate counts {counted} · synthetic data"]


@pytest.mark.parametrize("synthetic", [True, False])
def test_the_name_of_a_download_says_whether_data_are_synthetic(synthetic: bool) -> None:
    stem = _scope(synthetic=synthetic).file_stem("failures")
    assert stem == f"faultline-c{'-synthetic' if synthetic else ''}-2026-01-failures"


def test_a_day_is_written_as_a_day_and_a_time_with_its_hours() -> None:
    days = pd.DataFrame({"at": pd.to_datetime(["2026-01-05", None])})
    column = table._config(Column("at", "Seen", "day"), days, "UTC")["at"]
    assert column["type_config"]["type"] == "datetime"
    assert column["type_config"]["format"] == "D MMM YYYY"
    times = table._config(Column("at", "Seen", "time"), days, "UTC")["at"]
    assert times["type_config"]["format"] == "D MMM YYYY HH:mm"


def test_the_colour_of_links_is_what_pandas_itself_would_say() -> None:
    columns = (Column("node", "Node", link="node"), Column("reason", "Reason"), Column("n", "N"))
    shown = ROWS.assign(at=pd.Timestamp("2026-01-05", tz="UTC"))
    scope = _scope(synthetic=False)
    ours = _marshalled(table._coloured(Table("nodes", "Nodes", columns, shown), shown, scope))
    colour = table.LINK_COLOUR["light"]
    pandas_own = _marshalled(
        shown.style.set_uuid("nodes").set_properties(subset=["node"], color=colour)
    )
    selectors, _, rule = ours.styles.partition(" {")
    assert rule == f" color: {colour} }}"
    assert selectors == "#T_nodes_row0_col0, #T_nodes_row1_col0, #T_nodes_row2_col0"
    assert ours.styles == pandas_own.styles
    assert ours.display_values == pandas_own.display_values


def _marshalled(styler: Any) -> Any:
    proto = ArrowData()
    marshall_styler(proto, styler, "t")
    return proto.styler
