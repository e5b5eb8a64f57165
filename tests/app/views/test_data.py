"""Data: what does this rest on, and what is missing?"""

from __future__ import annotations

import gzip
import shutil
from typing import TYPE_CHECKING

import pytest
import streamlit as st

from app.actions import Options, ingest_files, noted
from app.ask import reader
from app.views.fleet import upload_form
from data.ingest.readers import known_by
from data.state import State
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

PAGE = "views/fleet/data.py"
SACCT = """\
JobID|Cluster|Partition|User|Account|State|Submit|Start|End|NNodes|AllocTRES|NodeList
1|c|p|u|a|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-02T00:00:00|1|gres/gpu=8|n1
2|c|p|u|a|NODE_FAIL|2026-01-02T00:00:00|2026-01-02T00:00:00|2026-01-03T00:00:00|1|gres/gpu=8|n1
3|c|p|u|a|COMPLETED|yesterday|2026-01-02T00:00:00|2026-01-03T00:00:00|1|gres/gpu=8|n1
"""


@pytest.fixture(scope="module")
def own_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One ingest: two attempts and a record that could not be read; only to be read."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "sacct.txt").write_text(SACCT)
    ingest_files(folder / "store", "sacct", [str(folder / "sacct.txt")], Options())
    return folder / "store"


def test_the_page_says_what_is_there_and_what_is_missing(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, period="all")
    assert not page.exception
    assert page.title[0].value.endswith("node_failures has none")
    assert len(page.get("plotly_chart")) == 1
    assert "jobs" in set(page.dataframe[0].value["source"])


@pytest.mark.parametrize(
    "tab",
    [
        "Sources",
        "Collected",
        "Names of nodes",
        "Clocks",
        "Ingests",
        "Rejected rows",
        "Audit",
        "Add data",
    ],
)
def test_every_tab_of_a_link_opens(
    open_page: Callable[..., AppTest], demo_store: Path, tab: str
) -> None:
    page = open_page(demo_store, PAGE, period="all", data_tab=tab)
    assert not page.exception


def test_ingests_and_rejected_records_are_listed(
    open_page: Callable[..., AppTest], own_store: Path
) -> None:
    ingests = open_page(own_store, PAGE, period="all", data_tab="Ingests").dataframe[0].value
    assert list(ingests["rows_read"]) == [3]
    assert list(ingests["rows_rejected"]) == [1]
    rejected = open_page(own_store, PAGE, period="all", data_tab="Rejected rows").dataframe[0].value
    assert list(rejected["line_no"]) == [4]


def test_rejected_records_are_found_by_reason_and_text_page_by_page(
    open_page: Callable[..., AppTest], tmp_path: Path
) -> None:
    broken = SACCT.splitlines(keepends=True)[-1]
    later = broken.replace("2026-01-02T", "2026-13-02T").replace("yesterday", "2026-01-01T00:00:00")
    (tmp_path / "sacct.txt").write_text(SACCT + broken * 1_001 + later)
    ingest_files(tmp_path / "store", "sacct", [str(tmp_path / "sacct.txt")], Options())
    page = open_page(tmp_path / "store", PAGE, period="all", data_tab="Rejected rows")
    assert len(page.dataframe[0].value) == 1_000
    page.number_input(key="rejected_page").set_value(2).run()
    assert list(page.dataframe[0].value["line_no"]) == [1_004, 1_005, 1_006]
    page.text_input(key="rejected_text").set_value("2026-13-02t").run()
    assert list(page.dataframe[0].value["line_no"]) == [1_006]
    page.selectbox(key="rejected_reason").select("submit is no time").run()
    assert not page.dataframe
    assert any("No rejected record is like that." in text.value for text in page.markdown)
    assert not page.exception


def test_an_ingest_is_taken_back_once_what_must_be_repeated_was_shown(
    open_page: Callable[..., AppTest], own_store: Path, tmp_path: Path
) -> None:
    store = shutil.copytree(own_store, tmp_path / "store")
    (tmp_path / "more.txt").write_text(SACCT.replace("2026-01", "2026-02"))
    ingest_files(store, "sacct", [str(tmp_path / "more.txt")], Options())
    page = open_page(store, PAGE, period="all", data_tab="Ingests")
    page.selectbox(key="undo_ingest").select("1.1").run()
    assert "1 ingest that came with it or later goes too" in page.warning[0].value
    again = f"faultline ingest sacct {tmp_path / 'more.txt'} --store {store}"
    assert again in [block.value for block in page.code]
    page.button(key="undo_2").click().run()
    assert not page.exception
    assert page.success[0].value.startswith("Ingest `1.1` is taken back. `faultline rollback --to")
    assert again in [block.value for block in page.code]
    opened = Store.open(store)
    assert opened.rows("SELECT count(*) FROM ingests") == [(0,)]
    opened.close()
    assert State(store).audit()[0][2] == "rollback"


def test_real_data_carry_no_badge(open_page: Callable[..., AppTest], own_store: Path) -> None:
    assert "synthetic" not in open_page(own_store, PAGE, period="all").caption[0].value


def test_commands_are_shown_for_the_period_and_cluster(
    open_page: Callable[..., AppTest], own_store: Path
) -> None:
    page = open_page(own_store, PAGE, period="7d", cluster="c", data_tab="Add data")
    assert not page.exception
    export, ingest = (block.value for block in page.code)
    assert "-S 2025-12-27 -E 2026-01-03" in export
    command = "faultline ingest sacct sacct.txt --cluster c --timezone UTC"
    assert ingest == f"{command} --store {own_store}"


@pytest.mark.slow
def test_a_file_that_is_uploaded_is_in_the_store_under_its_own_name(
    open_page: Callable[..., AppTest], tmp_path: Path
) -> None:
    page = open_page(tmp_path / "store", PAGE)
    page.file_uploader(key="upload_file").set_value(
        ("sacct.txt", SACCT.encode(), "text/plain")
    ).run()
    page.text_input(key="upload_timezone").set_value("Europe/Berlin")
    next(button for button in page.button if button.label == "Ingest").click().run()
    assert not page.exception
    assert "3 records read as sacct, 2 kept, 0 skipped, 1 rejected" in page.success[0].value
    assert page.success[0].value.startswith("sacct.txt is in the store")
    assert page.warning[0].value.startswith("1 of 3 records rejected: ")
    store = Store.open(tmp_path / "store")
    assert store.rows("SELECT path FROM ingests") == [("sacct.txt",)]
    assert store.rows("SELECT path FROM rejected_rows") == [("sacct.txt",)]
    store.close()
    assert '"path": "sacct.txt"' in State(tmp_path / "store").audit()[0][3]


@pytest.mark.slow
def test_a_cut_archive_is_refused_unless_what_precedes_the_cut_is_asked_for(
    open_page: Callable[..., AppTest], tmp_path: Path
) -> None:
    packed = gzip.compress(SACCT.encode())[:-8]  # all of the text, none of its check
    for partial in (False, True):
        page = open_page(tmp_path / "store", PAGE)
        page.file_uploader(key="upload_file").set_value(
            ("sacct.gz", packed, "application/gzip")
        ).run()
        page.text_input(key="upload_timezone").set_value("UTC")
        page.checkbox(key="upload_partial").set_value(partial)
        next(button for button in page.button if button.label == "Ingest").click().run()
        assert not page.exception
        told = " ".join(each.value for each in (*page.error, *page.success, *page.warning))
        assert ("read what came before with --partial" in told) is not partial
        assert ("is in the store" in told) is partial


@pytest.mark.slow
def test_a_mapping_is_chosen_or_uploaded_and_never_a_path(
    open_page: Callable[..., AppTest], tmp_path: Path
) -> None:
    log = b"host,down\nn1,2024-05-01 10:00:00\n"
    toml = b'cluster = "hal"\n[columns]\nnode = "host"\nstart = "down"\n'
    page = open_page(tmp_path / "store", PAGE)
    page.selectbox(key="upload_source").select("failure-log").run()
    assert page.selectbox(key="upload_preset").options == ["lanl", "pnnl"]
    page.file_uploader(key="upload_file").set_value(("failures.csv", log, "text/csv")).run()
    page.file_uploader(key="upload_own_mapping").set_value(("../own.toml", toml, "text/plain"))
    next(button for button in page.button if button.label == "Ingest").click().run()
    assert not page.exception
    assert page.success[0].value.startswith("failures.csv is in the store: 1 record read")
    store = Store.open(tmp_path / "store")
    assert store.rows("SELECT cluster, node, source FROM node_failures") == [("hal", "n1", "own")]
    store.close()


@pytest.mark.slow
def test_only_what_the_source_knows_is_asked_and_it_is_read_with_it(
    open_page: Callable[..., AppTest], tmp_path: Path
) -> None:
    page = open_page(tmp_path / "store", PAGE)
    assert {each.key for each in page.text_input} == {"upload_cluster", "upload_timezone"}
    page.selectbox(key="upload_source").select("node-facts").run()
    asked = {each.key.removeprefix("upload_") for each in page.text_input}
    assert asked == {"cluster", "timezone", "columns", "delimiter", "at"}
    facts = ("facts.csv", b"Host,driver\nn1,550.1\n", "text/csv")
    page.file_uploader(key="upload_file").set_value(facts).run()
    own = ("own.toml", b'[columns]\nnode = "Host"\n', "text/plain")
    page.file_uploader(key="upload_own_mapping").set_value(own)
    page.text_input(key="upload_at").set_value("2026-01-31 12:00")
    next(button for button in page.button if button.label == "Ingest").click().run()
    assert not page.exception
    store = Store.open(tmp_path / "store")
    facts = "SELECT node, key, value, epoch(from_at)::BIGINT FROM node_facts"
    assert store.rows(facts) == [("n1", "driver", "550.1", 1769860800)]
    store.close()


@pytest.mark.slow
def test_a_kernel_log_is_read_with_the_boot_time_that_was_typed(
    open_page: Callable[..., AppTest], tmp_path: Path
) -> None:
    page = open_page(tmp_path / "store", PAGE)
    page.selectbox(key="upload_source").select("kernel-log").run()
    asked = {each.key.removeprefix("upload_") for each in page.text_input}
    assert asked == {"cluster", "timezone", "node", "boot_at", "year"}
    line = b"[   60.5] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus\n"
    page.file_uploader(key="upload_file").set_value(("dmesg", line, "text/plain")).run()
    page.text_input(key="upload_node").set_value("n1")
    page.text_input(key="upload_boot_at").set_value("someday").run()
    assert "'someday' is no time" in page.warning[0].value
    page.text_input(key="upload_boot_at").set_value("2026-01-31 12:00").run()
    next(button for button in page.button if button.label == "Ingest").click().run()
    assert not page.exception
    store = Store.open(tmp_path / "store")
    found = store.rows("SELECT node, epoch_us(observed_at) FROM health_events")
    assert found == [("n1", 1769860860500000)]
    store.close()


def test_the_upload_asks_for_every_option_that_a_source_knows() -> None:
    assert {*known_by()} == {*upload_form._TEXTS, "mapping", "meta"} - {"cluster", "timezone"}


@pytest.mark.slow
def test_columns_are_matched_tried_and_read(
    open_page: Callable[..., AppTest], tmp_path: Path
) -> None:
    table = b"Ticket,Host,Begun\n7,n1,2026-01-01\n8,n2,someday\n"
    page = open_page(tmp_path / "store", PAGE)
    page.selectbox(key="upload_source").select("tickets")
    page.file_uploader(key="upload_file").set_value(("mine.csv", table, "text/csv")).run()
    page.toggle(key="wizard").set_value(True).run()
    assert any("Name the column of opened_at" in each.value for each in page.caption)
    fields = {each.label.partition(":")[0]: each for each in page.selectbox}
    assert fields["node"].value == "Host"
    fields["opened_at (needed)"].select("Begun").run()
    fields["How its times are written"].select("by a pattern").run()
    page.text_input(key="wizard_pattern_tickets").set_value("%Y-%m-%d").run()
    said = "Of the first 2 records 1 would be kept, 0 skipped, 1 rejected."
    assert said in [each.value for each in page.markdown]
    page.button(key="wizard_read").click().run()
    assert not page.exception
    assert page.success[0].value.startswith("mine.csv is in the store: 2 records read as tickets")
    store = Store.open(tmp_path / "store")
    assert store.rows("SELECT ticket_id, node FROM tickets") == [("7", "n1")]
    store.close()


@pytest.mark.slow
def test_a_file_of_no_known_format_is_a_notice(
    open_page: Callable[..., AppTest], tmp_path: Path
) -> None:
    page = open_page(tmp_path / "store", PAGE)
    page.file_uploader(key="upload_file").set_value(
        ("poem.txt", b"Roses are red\n", "text/plain")
    ).run()
    next(button for button in page.button if button.label == "Ingest").click().run()
    assert not page.exception
    assert page.warning[0].value.startswith("poem.txt: is of no format known")


def test_a_demo_store_takes_no_uploads(open_page: Callable[..., AppTest], demo_store: Path) -> None:
    page = open_page(demo_store, PAGE, data_tab="Add data")
    assert not page.get("file_uploader")
    assert any("never mixes with real data" in text.value for text in page.markdown)


def test_an_empty_store_can_be_filled_from_here(
    open_page: Callable[..., AppTest], empty_store: Path
) -> None:
    page = open_page(empty_store, PAGE)
    assert not page.exception
    assert page.get("file_uploader")


def test_the_audit_is_chosen_by_person_and_action(
    open_page: Callable[..., AppTest], own_store: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    shutil.copytree(own_store, store)
    for person in ("ann", "bob"):
        noted(store, "query", {"sql": f"SELECT '{person}'"}, person=person)
    page = open_page(store, PAGE, period="all", data_tab="Audit")
    assert list(page.dataframe[0].value["action"]) == ["query", "query", "ingest"]
    page.selectbox(key="audit_action").select("query")
    page.selectbox(key="audit_person").select("ann").run()
    assert page.dataframe[0].value[["person", "action"]].to_numpy().tolist() == [["ann", "query"]]
    assert not page.exception


def test_the_person_of_a_link_is_who_acts_and_can_log_out(
    open_page: Callable[..., AppTest], own_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def out(page: AppTest) -> list[str]:
        return [each.proto.body for each in page.get("html") if "logout" in each.proto.body]

    assert out(open_page(own_store, PAGE)) == []
    headers = {reader.PERSON: "ann@ops", reader.SESSION: "1"}
    monkeypatch.setattr(type(st.context), "headers", headers)
    page = open_page(own_store, "views/explore/sql.py")
    assert out(page) == ['ann@ops · <a href="./logout">Log out</a>']
    assert reader.author() == "ann@ops"
    assert "author" not in {each.key for each in page.text_input}


def test_filters_that_the_page_does_not_go_by_are_not_named_and_change_nothing(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    plain = open_page(demo_store, PAGE, period="7d")
    page = open_page(demo_store, PAGE, period="7d", partition="learn", min_gpus="9")
    assert [caption.value for caption in page.caption] == [c.value for c in plain.caption]
    assert page.selectbox(key="partition").value == "learn"  # for the next page
