"""SQL: ask the store anything, see it as rows or a chart, keep the query."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

import pytest

from app import actions
from app.actions import Options, ingest_files
from app.widgets.page_head import KNOWN
from data.audit import Audit
from data.errors import DataError
from data.publish import writer
from data.sandbox import keep_spares
from data.saved_queries import SavedQueries
from tests.app.views.conftest import behind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pandas as pd
    from streamlit.testing.v1 import AppTest

PAGE = "views/explore/sql.py"
SACCT = """\
JobID|Cluster|Partition|User|Account|State|Submit|Start|End|NNodes|AllocTRES|NodeList
1|c|p|u|a|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-02T00:00:00|1|gres/gpu=8|n1
2|c|p|u|a|NODE_FAIL|2026-01-02T00:00:00|2026-01-02T00:00:00|2026-01-03T00:00:00|1|gres/gpu=8|n1
"""


@pytest.fixture(autouse=True, scope="module")
def _no_spares_left() -> Iterator[None]:
    yield
    keep_spares(0)


@pytest.fixture(scope="module")
def _ingested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sql")
    (folder / "sacct.txt").write_text(SACCT)
    ingest_files(folder / "store", "sacct", [str(folder / "sacct.txt")], Options())
    return folder / "store"


@pytest.fixture
def own_store(_ingested: Path, tmp_path: Path) -> Path:
    """A real store that may be written to."""
    return shutil.copytree(_ingested, tmp_path / "store")


@pytest.fixture
def asked(open_page: Callable[..., AppTest]) -> Callable[..., AppTest]:
    """Opens the page with a query in the link, presses Run, and waits for the answer."""

    def ask(store: Path, sql: str, **filters: str) -> AppTest:
        return answered(pressed(open_page(store, PAGE, sql=sql, **filters)))

    return ask


def pressed(page: AppTest) -> AppTest:
    """The page after Run was pressed."""
    return page.button(key="sql_run").click().run()


def answered(page: AppTest) -> AppTest:
    """The page once its query has ended."""
    deadline = time.monotonic() + 40
    while "sql_job" in page.session_state and time.monotonic() < deadline:
        time.sleep(0.1)
        page.run()
    assert not page.exception
    return page


def rows_of(page: AppTest) -> pd.DataFrame:
    """The rows of the answer: the parameters stand before them."""
    return page.dataframe[1].value


def says(page: AppTest, words: str) -> bool:
    """Whether the page has the words somewhere in its text."""
    return any(words in each.value for each in [*page.markdown, *page.caption, *page.error])


def test_a_query_that_a_link_brings_waits_to_be_read(
    open_page: Callable[..., AppTest], own_store: Path
) -> None:
    page = open_page(own_store, PAGE, sql="SELECT 42 AS answer", sql_tab="Chart")
    assert page.title[0].value == "Ask the store in SQL"
    assert page.session_state["sql_text"] == "SELECT 42 AS answer"
    assert page.info[0].value == "This query came with the link: read it, then press Run."
    page.run()
    assert not any(f"sql_{each}" in page.session_state for each in ("job", "answer", "failed"))
    assert asked_of(own_store) == []
    page = answered(pressed(page))
    assert page.session_state["sql_answer"].result.rows == [(42,)]
    assert not page.info
    (entry,) = asked_of(own_store)
    assert (entry["sql"], entry["from"]) == ("SELECT 42 AS answer", "link")


def test_a_query_that_a_link_brings_and_its_reader_changes_is_the_readers(
    open_page: Callable[..., AppTest], own_store: Path
) -> None:
    page = open_page(own_store, PAGE, sql="SELECT 42 AS answer")
    page.session_state["sql_text"] = "SELECT 43 AS answer"
    page.run()
    assert not page.info
    answered(pressed(page))
    (entry,) = asked_of(own_store)
    assert "from" not in entry


def test_a_link_to_a_saved_query_runs_it_once_and_the_audit_says_which(
    open_page: Callable[..., AppTest], own_store: Path
) -> None:
    saved = actions.save_query(own_store, "answer", "SELECT 42 AS answer, $min_gpus", author="ada")
    page = answered(open_page(own_store, PAGE, sql=saved.sql, min_gpus="9 UNION SELECT 1, 2"))
    assert not page.info
    of_link = page.session_state["sql_answer"]
    assert of_link.result.rows == [(42, 0)]
    assert page.run().session_state["sql_answer"] is of_link
    (entry,) = asked_of(own_store)
    assert (entry["query_id"], entry["saved_as"], entry["from"]) == (
        saved.query_id, "answer", "link",
    )  # fmt: skip


@pytest.mark.parametrize(
    "text", ["SELECT 42 AS answer; SELECT 1", "SELECT 42 AS answer ", "deleted"]
)
def test_a_link_to_what_is_nearly_saved_does_not_run(
    open_page: Callable[..., AppTest], own_store: Path, text: str
) -> None:
    saved = actions.save_query(own_store, "answer", "SELECT 42 AS answer", author="ada")
    if text == "deleted":
        SavedQueries(own_store).delete(saved.query_id, author="ada")
        text = saved.sql
    page = open_page(own_store, PAGE, sql=text)
    assert page.info
    assert asked_of(own_store) == []


def asked_of(store: Path) -> list[dict[str, str]]:
    """What the audit says of queries that were run."""
    return [entry.detail for entry in Audit(store).entries(action="query")]


DRAWN = "SELECT 1 AS a, 2 AS b, 3 AS c UNION SELECT 2, 3, 5"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("linked", "kind", "up"),
    [
        ('["scatter", "a", "b", null]', "scatter", "b"),
        ('["bar", "a", "gone", null]', "bar", "c"),
        ('["pie", "a", "b", null]', "bar", "c"),
        ("[1, 2]", "bar", "c"),
        ("{", "bar", "c"),
    ],
)
def test_a_link_draws_its_chart_or_else_the_usual_one(
    asked: Callable[..., AppTest], demo_store: Path, linked: str, kind: str, up: str
) -> None:
    page = asked(demo_store, DRAWN, sql_tab="Chart", sql_chart=linked)
    boxes = {box.label: box.value for box in page.selectbox}
    assert (boxes["Kind"], boxes["Up"]) == (kind, up)
    assert len(page.get("plotly_chart")) == 1


def test_the_page_says_what_a_query_rests_on(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE)
    assert "synthetic data" in page.caption[0].value
    assert "Snapshot 1, published" in page.caption[0].value
    assert "counts here from the next publish on" in behind(page, KNOWN)
    (limits,) = (each for each in page.caption if each.value.startswith("At most "))
    assert "10,000 rows" in limits.proto.help


def test_run_shows_the_rows(asked: Callable[..., AppTest], demo_store: Path) -> None:
    page = asked(demo_store, "SELECT state, count(*) AS n FROM jobs GROUP BY ALL ORDER BY n DESC")
    rows = rows_of(page)
    assert list(rows.columns) == ["state", "n"]
    assert rows["state"].iloc[0] == "COMPLETED"
    assert says(page, "rows** in")
    assert len(page.get("download_button")) == 4


@pytest.mark.slow
def test_tables_of_the_ledger_are_built_before_they_are_asked(
    asked: Callable[..., AppTest], own_store: Path
) -> None:
    page = asked(own_store, "SELECT sum(gpu_seconds) > 0 AS any FROM gpu_time")
    assert rows_of(page)["any"].to_list() == [True]
    assert page.session_state["sql_answer"].asked.snapshot == 2


def test_where_the_ledger_cannot_be_built_no_query_runs(
    open_page: Callable[..., AppTest], own_store: Path
) -> None:
    page = open_page(own_store, PAGE, sql="SELECT * FROM job_runs")
    with writer(own_store):
        pressed(page)
    assert not page.exception
    assert "could not be built" in page.warning[0].value
    assert "sql_job" not in page.session_state


def test_the_filters_are_parameters(asked: Callable[..., AppTest], demo_store: Path) -> None:
    sql = "SELECT $cluster AS cluster, $min_gpus AS gpus, $partition AS partition, $from_at < $to_at AS yes"
    page = asked(demo_store, sql, cluster="demo", min_gpus="9", partition="learn", period="7d")
    assert rows_of(page).iloc[0].to_list() == ["demo", 9, "learn", True]


def test_an_error_shows_the_line_with_a_caret(
    asked: Callable[..., AppTest], demo_store: Path
) -> None:
    page = asked(demo_store, "SELECT job_id,\n  colour\nFROM jobs")
    assert "colour" in page.error[0].value
    assert page.code[0].value == "  colour\n  ^^^^^^"
    assert page.session_state["sql_failed"].place == (2, 3, 6)
    assert not page.get("download_button")


def test_what_is_no_query_is_refused_with_the_reason(
    asked: Callable[..., AppTest], demo_store: Path
) -> None:
    page = asked(demo_store, "DROP TABLE jobs")
    assert "not DROP" in page.error[0].value
    assert not page.code


def test_markup_in_a_refusal_stays_text(asked: Callable[..., AppTest], demo_store: Path) -> None:
    page = asked(demo_store, "SELECT $a, '<b>' FROM jobs")
    assert r"\$a is unknown" in page.error[0].value


def test_more_rows_than_the_cap_are_said(asked: Callable[..., AppTest], demo_store: Path) -> None:
    page = asked(demo_store, "SELECT * FROM range(20000)")
    assert says(page, "**The first 10,000 rows**")
    assert says(page, "The first 1,000 rows are shown; the files hold all 10,000")
    assert len(rows_of(page)) == 1_000


@pytest.mark.slow
def test_more_columns_than_the_cap_are_said_and_their_frame_is_made_once(
    asked: Callable[..., AppTest], demo_store: Path
) -> None:
    page = asked(
        demo_store,
        f"SELECT {', '.join('*' * 600)} FROM (SELECT range AS a, 2 AS b FROM range(300))",
    )
    assert says(page, "The first 1,000 of 1,200 columns: name those that you need.")
    assert says(page, "The first 100 rows are shown; the files hold all 300")
    assert rows_of(page).shape == (100, 1_000)
    frame = vars(page.session_state["sql_answer"])["frame"]
    page.session_state["sql_tab"] = "Chart"
    page.run()
    assert len(page.get("plotly_chart")) == 1
    assert vars(page.session_state["sql_answer"])["frame"] is frame
    assert "sql_chart" not in page.query_params


def test_a_value_nested_too_deep_is_refused_in_one_line(
    asked: Callable[..., AppTest], demo_store: Path
) -> None:
    page = asked(demo_store, f"SELECT {'[' * 120}7{']' * 120}")
    assert "A value is nested more than 100 levels deep" in page.error[0].value


def test_no_rows_are_an_answer(asked: Callable[..., AppTest], demo_store: Path) -> None:
    page = asked(demo_store, "SELECT 1 AS a WHERE false")
    assert says(page, "**0 rows**")


def test_a_plan_is_shown_as_text(asked: Callable[..., AppTest], demo_store: Path) -> None:
    page = asked(demo_store, "EXPLAIN SELECT job_id FROM jobs WHERE n_gpus > 1")
    assert "jobs" in page.code[0].value


def test_every_kind_of_value_is_shown(asked: Callable[..., AppTest], demo_store: Path) -> None:
    page = asked(demo_store, "SELECT * FROM test_all_types()")
    assert len(rows_of(page)) == 3


def test_a_runaway_is_cancelled(open_page: Callable[..., AppTest], demo_store: Path) -> None:
    page = pressed(open_page(demo_store, PAGE, sql="SELECT count(*) FROM range(100000000000000)"))
    assert page.button(key="sql_run").disabled
    assert "sql_job" in page.session_state
    page.button(key="sql_cancel").click().run()
    assert "sql_job" not in page.session_state
    assert says(page, "The query was cancelled after")
    assert not page.error
    assert not page.button(key="sql_run").disabled


def test_the_page_opens_on_examples_and_one_fills_the_editor(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE)
    page.button(key="example_Failures per 1,000 node-days by rack").click().run()
    assert "node_days" in page.session_state["sql_text"]
    page.button(key="sql_run").click().run()
    assert "failures_per_1000_node_days" in rows_of(answered(page))


def test_a_chart_is_drawn_of_the_columns_picked(
    asked: Callable[..., AppTest], demo_store: Path
) -> None:
    page = asked(
        demo_store, "SELECT state, count(*) AS n, sum(n_gpus) AS gpus FROM jobs GROUP BY ALL"
    )
    page.session_state["sql_tab"] = "Chart"
    page.run()
    assert not page.exception
    assert len(page.get("plotly_chart")) == 1
    kind = next(box for box in page.selectbox if box.label == "Kind")
    assert kind.value == "bar"
    kind.select("scatter").run()
    assert not page.exception


def test_words_alone_have_no_chart(asked: Callable[..., AppTest], demo_store: Path) -> None:
    page = asked(demo_store, "SELECT 'a' AS word")
    page.session_state["sql_tab"] = "Chart"
    page.run()
    assert says(page, "Nothing to draw")


def test_the_columns_of_a_table_are_explained(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE)
    page.session_state["shelf"] = "Tables"
    page.run().selectbox(key="sql_table").select("incidents").run()
    assert page.button(key="insert_column_incidents_lost_gpu_seconds")
    assert says(page, "bigint, GPU-seconds")
    page.button(key="insert_column_incidents_lost_gpu_seconds").click().run()
    assert page.session_state["sql_insert"]["text"] == "lost_gpu_seconds"
    assert "lost_gpu_seconds" in page.dataframe[-1].value


def test_a_name_that_is_a_word_of_sql_is_quoted(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE)
    page.session_state["shelf"] = "Tables"
    page.run().selectbox(key="sql_table").select("jobs").run()
    page.button(key="insert_column_jobs_user").click().run()
    assert page.session_state["sql_insert"]["text"] == '"user"'


def test_a_query_is_saved_renamed_deleted_and_back(
    open_page: Callable[..., AppTest], own_store: Path
) -> None:
    page = open_page(own_store, PAGE, sql="SELECT 1")
    page.session_state["shelf"] = "Saved"
    page.run()
    assert says(page, "Nobody has saved a query yet")
    page.text_input(key="author").input("ada")
    page.text_input(key="sql_name").input("one $x* ")
    next(each for each in page.button if each.label == "Save the query").click().run()
    (made,) = SavedQueries(own_store).saved()
    assert (made.name, made.author, made.sql) == ("one $x*", "ada", "SELECT 1")
    page.text_input(key=f"name_{made.query_id}").input("two")
    page.button(key=f"rename_{made.query_id}").click().run()
    assert [each.name for each in SavedQueries(own_store).saved()] == ["two"]
    page.button(key=f"delete_{made.query_id}").click().run()
    assert SavedQueries(own_store).saved() == []
    page.button(key="sql_restore").click().run()
    assert [each.name for each in SavedQueries(own_store).saved()] == ["two"]
    assert not page.exception


def test_a_name_that_is_taken_is_refused(
    open_page: Callable[..., AppTest], own_store: Path
) -> None:
    actions.save_query(own_store, "one", "SELECT 2", author="grace")
    page = open_page(own_store, PAGE, sql="SELECT 1")
    page.session_state["shelf"] = "Saved"
    page.run()
    page.text_input(key="sql_name").input("one")
    next(each for each in page.button if each.label == "Save the query").click().run()
    assert "grace has saved a query as 'one'" in page.warning[0].value


def test_the_past_of_a_person_comes_back(asked: Callable[..., AppTest], own_store: Path) -> None:
    actions.kept_queries(own_store).remember("SELECT 'before'", "1 row", author="ada")
    page = asked(own_store, "SELECT 'now'")
    page.session_state["shelf"] = "History"
    page.run()
    labels = [each.label for each in page.button]
    assert "`SELECT 'now'`" in labels
    assert "`SELECT 'before'`" not in labels
    page.text_input(key="author").input("ada").run()
    assert "`SELECT 'before'`" in [each.label for each in page.button]
    page.button(key="past_1").click().run()
    assert page.session_state["sql_text"] == "SELECT 'before'"


def test_a_query_without_a_name_is_not_kept(asked: Callable[..., AppTest], own_store: Path) -> None:
    asked(own_store, "SELECT 1")
    assert SavedQueries(own_store).past("") == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("period", "all"), ("cluster", "demo"), ("partition", "learn"), ("account", "vision"), ("min_gpus", "9")],
)  # fmt: skip
def test_every_filter_of_a_link_is_a_parameter_of_the_query(
    answers: Callable[..., tuple[AppTest, bool]], demo_store: Path, name: str, value: str
) -> None:
    page, changed = answers(demo_store, PAGE, {name: value})
    assert page.title
    assert changed


def test_an_empty_store_says_which_commands_fill_it(
    open_page: Callable[..., AppTest], empty_store: Path
) -> None:
    page = open_page(empty_store, PAGE)
    assert not page.exception
    assert "faultline ingest" in page.code[0].value


def test_an_author_without_rights_is_told(
    open_page: Callable[..., AppTest], own_store: Path
) -> None:
    with pytest.raises(DataError, match="there is no query to save"):
        actions.save_query(own_store, "x", " ")
    with pytest.raises(DataError, match="a name holds 1 to 80 characters, got 0"):
        actions.save_query(own_store, "  ", "SELECT 1")
