"""A row is described once: every surface tells the same of it."""

from __future__ import annotations

import pickle

from analytics.estimate import Estimate
from app.answers.described import DATA, Rows, field
from app.words.cells import Column
from app.words.glossary import of_failures

ETTR = Estimate(0.9, 0.8, 0.95, 0.9, 12)
FIELDS = (
    Column("run_id", "Run"),
    field("hours", "Hours", "number", lambda run: run["seconds"] / 3600, on=DATA),
    field(
        "ettr",
        "ETTR",
        "ettr",
        names={"json": "measured", "csv": ("ettr", "lower", "upper", "conf_level", "n")},
    ),
)
ROWS = Rows(FIELDS, [{"run_id": "7", "seconds": 1800, "ettr": ETTR}])


def test_each_surface_has_its_fields_in_its_own_names() -> None:
    table = ROWS.table("runs", "Runs", empty="None ran.")
    assert [column.key for column in table.columns] == ["run_id", "ettr"]
    assert table.values == [("7", ETTR)]
    assert ROWS.records() == [{"run_id": "7", "hours": 0.5, "measured": ETTR}]
    assert ROWS.sheet().columns == ("run_id", "hours", "ettr", "lower", "upper", "conf_level", "n")
    assert ROWS.sheet().rows == [("7", 0.5, 0.9, 0.8, 0.95, 0.9, 12)]
    assert ROWS.frame().to_dict("records") == [
        {"run_id": "7", "hours": 0.5, "ettr": 0.9, "ettr_lower": 0.8, "ettr_upper": 0.95}
    ]


def test_headers_stand_also_where_no_row_is() -> None:
    assert Rows(FIELDS, []).sheet().columns == ROWS.sheet().columns
    assert list(Rows(FIELDS, []).frame()) == list(ROWS.frame())


def test_a_value_may_be_an_attribute_of_an_attribute() -> None:
    lower = field("least", of="lower.real", on=("json",))
    assert Rows((lower,), [ETTR]).records() == [{"least": 0.8}]


def test_what_a_chart_lists_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(ROWS)).frame().equals(ROWS.frame())


def test_a_term_of_the_glossary_gives_the_title_and_the_help() -> None:
    plain = field("lift", kind="number", term=of_failures.LIFT).column
    assert (plain.title, plain.help) == (of_failures.LIFT.label, of_failures.LIFT.definition)
    assert field("lift", "Over chance", term=of_failures.LIFT).column.title == "Over chance"
