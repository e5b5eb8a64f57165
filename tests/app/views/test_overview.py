"""Overview: is my fleet good, what changed, what needs me?"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app.actions import build_ledger
from app.answers.fleet.actions import listed
from app.widgets.page_head import RECORDS
from app.words import numbers
from data.store import Store
from tests.app.views.conftest import behind, whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlit.testing.v1 import AppTest

FILTERS = [
    ({"period": "24h"}, True),
    ({"period": "7d"}, True),
    ({"period": "90d"}, False),
    ({"period": "all"}, False),
    ({"cluster": "demo"}, False),
    ({"min_gpus": "64"}, True),
    ({"period": "custom", "from": "2025-12-02T00:00", "to": "2025-12-03T00:00"}, True),
]
"""A filter, and whether the demo's answer differs from that of all its last 28 days: it is two
weeks of one cluster."""


def test_the_first_sentence_answers_and_the_numbers_follow(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store)
    assert not page.exception
    verdict = page.title[0].value.partition(":")[0]
    assert verdict in ("Well", "Watch", "Act", "Not clear yet")
    assert whole(page).startswith(page.title[0].value)
    assert "RSC-1's 6.50" in whole(page), "no quarter before is recorded"
    rate, mttf, *others = [metric.label for metric in page.metric]
    assert rate == "Failures per 1,000 node-days", "of all sizes, whatever it is compared with"
    assert mttf.startswith("MTTF, ")
    assert others == ["ETTR, 129+ GPUs", "Lost: failures, GPU-h"]


def test_what_to_do_stands_on_the_page_each_row_with_its_link(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, period="all")
    texts = [*page.markdown]
    places = [n for n, text in enumerate(texts) if text.value.startswith(":gray[:material/")]
    rows = [texts[n].value for n in places]
    assert 1 < len(rows) <= listed.SHOWN == 5
    assert all(row.count("](") == 1 and "; " not in row for row in rows)
    assert "GPU-h at stake" in [caption.value for caption in page.caption]
    for stake in (texts[n + 1] for n in places):
        assert re.fullmatch(r"not known|\*\*[\d,.]+\*\*", stake.value)
        assert " At stake: " in stake.proto.help, "what and why are behind the stake"
    assert any("](incident?period=all&incident=" in row for row in rows)
    assert any("](stragglers?period=all&trace=" in row for row in rows)


def test_the_reference_and_the_size_of_the_address_are_those_of_the_answer(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, period="all", reference="RSC-2", job_gpus="4096")
    assert "RSC-2's 2.34" in whole(page)
    assert page.metric[1].label == "MTTF, 4,096 GPUs"
    own = open_page(demo_store, period="all", reference="own last quarter")
    assert own.title[0].value.startswith("Not clear yet: ")
    assert whole(own).endswith("nothing is recorded of the quarter before.")


def test_generated_data_carry_the_badge_and_the_page_says_what_it_rests_on(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store)
    assert "synthetic data" in page.caption[0].value
    assert "Records" not in page.caption[0].value
    recorded = behind(page, "Records with gaps")
    assert recorded.startswith("Records: jobs")
    assert "none of node_failures" in recorded


@pytest.mark.slow
@pytest.mark.parametrize(
    ("filters", "changes"),
    FILTERS,
    ids=["-".join(filters.values()) for filters, _ in FILTERS],
)
def test_every_filter_of_a_link_is_applied_and_named(
    answers: Callable[..., tuple[AppTest, bool]],
    demo_store: Path,
    filters: dict[str, str],
    changes: bool,
) -> None:
    page, changed = answers(demo_store, "", filters)
    assert page.title[0].value
    assert changed == changes
    named = page.caption[0].value
    expected = {
        "all": "all time",
        "custom": "2 Dec 2025",
        "demo": "demo",
        "64": "jobs of 64+ GPUs",
    }
    for value in filters.values():
        assert expected.get(value, "") in named
    behind_it = behind(page, *(words for _, words in RECORDS.values()))
    if "from" in filters:
        assert "2 Dec 2025 00:00 to 3 Dec 2025 00:00" in behind_it
    if "min_gpus" in filters:
        assert "rate counts jobs of 64 GPUs and more" in behind_it


@pytest.mark.slow
def test_partition_and_account_filter(
    open_page: Callable[..., AppTest],
    answers: Callable[..., tuple[AppTest, bool]],
    demo_store: Path,
) -> None:
    page = open_page(demo_store)
    for name in ("partition", "account"):
        chosen = page.selectbox(key=name).options[0]
        filtered, changed = answers(demo_store, "", {name: chosen})
        assert changed
        assert f"{name} {chosen}" in filtered.caption[0].value


def test_a_number_opens_its_rows(open_page: Callable[..., AppTest], demo_store: Path) -> None:
    page = open_page(demo_store, period="all")
    before = len(page.dataframe)
    page.button(key="rows_Failures per 1,000 node-days").click().run()
    assert not page.exception
    assert len(page.dataframe) == before + 1
    assert {"failed_at", "job_id", "state", "method"} <= set(page.dataframe[-1].value.columns)


@pytest.mark.slow
def test_reset_takes_every_filter_back(open_page: Callable[..., AppTest], demo_store: Path) -> None:
    page = open_page(demo_store, period="7d", min_gpus="64", cluster="demo")
    next(button for button in page.button if button.label == "Reset").click().run()
    assert page.session_state["period"] == "28d"
    assert page.session_state["min_gpus"] is None
    assert page.session_state["cluster"] is None


def test_a_period_without_data_says_so_and_what_to_do(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(
        demo_store, period="custom", **{"from": "1999-01-01T00:00", "to": "1999-02-01T00:00"}
    )
    assert not page.exception
    assert page.title[0].value == "How often the fleet fails cannot be judged"
    assert whole(page).startswith(f"{page.title[0].value}: no failure could be seen, as ")
    assert behind(page, "Blind: no failure could be seen").startswith("Records: none of jobs, ")
    assert any("choose a longer period" in text.value for text in page.markdown)


def test_a_period_that_ends_before_it_begins_is_a_notice(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(
        demo_store, period="custom", **{"from": "2025-12-03T00:00", "to": "2025-12-02T00:00"}
    )
    assert not page.exception
    assert "ends before it begins" in page.warning[0].value


@pytest.mark.parametrize("published", [True, False], ids=["published", "no folder"])
def test_an_empty_store_says_which_commands_fill_it(
    open_page: Callable[..., AppTest], empty_store: Path, tmp_path: Path, published: bool
) -> None:
    page = open_page(empty_store if published else tmp_path / "nowhere")
    assert not page.exception
    assert page.title[0].value == "This store holds no data yet"
    assert "faultline ingest sacct sacct.txt" in page.code[0].value
    assert page.get("file_uploader")
    assert page.button(key="load_demo").label == "Load the demo"


def test_a_broken_store_is_a_notice_not_a_crash(
    open_page: Callable[..., AppTest], tmp_path: Path
) -> None:
    (tmp_path / "CURRENT").write_text("not what a publish writes")
    page = open_page(tmp_path)
    assert not page.exception
    assert "restore it from a backup" in page.warning[0].value


@pytest.mark.parametrize("name", ["cluster", "partition", "account"])
def test_a_value_that_the_store_does_not_hold_is_named(
    open_page: Callable[..., AppTest], demo_store: Path, name: str
) -> None:
    page = open_page(demo_store, **{name: "nope"})
    assert not page.exception
    assert any(f"No {name} nope in this store" in each.value for each in page.warning)
    page = open_page(demo_store)
    assert not page.warning


@pytest.mark.slow
def test_a_change_is_a_number_only_where_it_is_clear(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, period="7d")
    said = [each for each in page.markdown if "-badge[" in each.value]
    changes = [each for each in said if each.proto.help.endswith(" in the quarter before")]
    assert changes
    clear = r"(better|worse): [+-][\d.]+\s%"
    verdict = "good|watch|act|unknown"
    for each in said:
        assert re.fullmatch(
            rf":\w+-badge\[:material/\w+: (steady|maybe worse|{clear}|{verdict})\]", each.value
        )
    mttf = page.metric[1].proto.help
    assert "Maybe worse: they do" in mttf, "the help tells what the states mean"
    assert any(": maybe worse]" in each.value for each in changes), "a week has too few failures"


@pytest.mark.slow
def test_the_ettr_is_that_of_the_size_asked_for_and_a_loss_has_its_price(
    open_page: Callable[..., AppTest], tmp_path: Path, demo_store: Path
) -> None:
    store = Path(shutil.copytree(demo_store, tmp_path / "store"))
    priced = '[cluster.demo]\ngpu_hour_price = 2.5\ncurrency = "EUR"\n'
    (store / "site.toml").write_text(priced, encoding="utf-8")
    build_ledger(store)
    first = open_page(store, period="all", min_gpus="64")
    shown = {metric.label: metric.value for metric in first.metric}
    (lost,) = (each for each in first.metric if each.label == "Lost: failures, GPU-h")
    assert " EUR; most by " in lost.proto.help
    assert first.button(key="rows_Lost: failures, GPU-h").label.startswith("costliest: ")
    alone = open_page(store, "views/efficiency/ettr.py", period="all", min_gpus="64")
    assert shown["ETTR, 64+ GPUs"] == alone.metric[0].value


def test_the_chart_is_drawn_once_it_is_opened(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    assert not open_page(demo_store).get("plotly_chart")
    assert len(open_page(demo_store, by_week="true").get("plotly_chart")) == 1


def test_nodes_out_of_service_are_counted_and_listed_once_they_are_opened(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    store = Store.open(demo_store)
    outage = "SELECT start_at, end_at FROM node_events WHERE planned IS NOT TRUE AND end_at > $at"
    begin, end = store.rows(outage, {"at": store.rows("SELECT min(end_at) FROM jobs")[0][0]})[0]
    amid = f"{begin + (end - begin) / 2:%Y-%m-%dT%H:%M}"
    period = {"period": "custom", "from": "2025-01-01T00:00", "to": amid}
    page = open_page(demo_store, **period)
    (label,) = (each.label for each in page.expander if "Out of service" in each.label)
    assert not page.dataframe
    (grid,) = open_page(demo_store, **period, out_of_service="true").dataframe
    assert label == f"Out of service, unplanned: {numbers.counted(len(grid.value), 'node')}"
