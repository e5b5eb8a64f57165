"""My runs: one user's jobs, chosen by the address, a box or the list of users."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

PAGE = "views/efficiency/my_runs.py"


@pytest.fixture(scope="session")
def owner(demo_store: Path) -> str:
    """The user of the largest runs."""
    with closing(Store.open(demo_store)) as store:
        ((name,),) = store.rows(
            'SELECT "user" FROM jobs GROUP BY 1 ORDER BY max(n_gpus) DESC, count(*) DESC LIMIT 1'
        )
    return str(name)


def test_without_a_user_the_page_lists_them(
    open_page: Callable[..., AppTest], demo_store: Path, owner: str
) -> None:
    page = open_page(demo_store, PAGE, period="all")
    assert not page.exception
    assert page.title[0].value == "Whose runs?"
    assert owner in set(page.dataframe[0].value["user"])


def test_a_link_says_why_the_jobs_of_a_user_ended_and_what_to_do(
    open_page: Callable[..., AppTest], demo_store: Path, owner: str
) -> None:
    page = open_page(demo_store, PAGE, period="all", user=owner.upper())
    assert not page.exception
    assert page.title[0].value.startswith(f"{owner}: ")
    assert page.text_input(key="user").value == owner.upper()
    assert [metric.label for metric in page.metric][-1] == "ETTR, all runs"
    causes = next(f.value for f in page.dataframe if "last_at" in f.value.columns)
    assert causes["action"].str.len().min() > 10
    assert set(causes["fault"]) <= {
        "hardware", "system software", "user program", "unknown", "nobody",
    }  # fmt: skip


def test_a_number_opens_the_jobs_behind_it(
    open_page: Callable[..., AppTest], demo_store: Path, owner: str
) -> None:
    page = open_page(demo_store, PAGE, period="all", user=owner)
    failed = int(page.metric[0].value.split(" of ")[0].replace(",", ""))
    page.button(key="rows_Failed").click().run()
    assert not page.exception
    assert page.text_input(key="search_jobs_behind").value == ""
    behind = [len(frame.value) for frame in page.dataframe if "confidence" in frame.value.columns]
    assert failed in behind


@pytest.mark.parametrize(
    ("filters", "changes"),
    [
        ({"period": "24h"}, True),
        ({"min_gpus": "64"}, True),
        ({"partition": "learn"}, True),
        ({"account": "nobody's"}, False),
        ({"cluster": "demo"}, False),
    ],
)
def test_every_filter_changes_the_answer_where_the_jobs_differ(
    answers: Callable[..., tuple[AppTest, bool]],
    demo_store: Path,
    owner: str,
    filters: dict[str, str],
    changes: bool,
) -> None:
    _, changed = answers(demo_store, PAGE, filters, period="all", user=owner)
    assert changed == changes


def test_an_unknown_user_is_a_notice_beside_the_list(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, period="all", user="nobody at all")
    assert not page.exception
    assert "has no job in the store" in page.warning[0].value
    assert page.title[0].value == "Whose runs?"
    assert page.text_input(key="user").value == "nobody at all"


def test_a_job_links_to_the_runs_of_its_user_at_its_time(
    open_page: Callable[..., AppTest], demo_store: Path, owner: str
) -> None:
    with closing(Store.open(demo_store)) as store:
        ((job,),) = store.rows(
            'SELECT job_id FROM jobs WHERE "user" = $user AND end_at IS NOT NULL ORDER BY 1 LIMIT 1',
            {"user": owner},
        )
    page = open_page(demo_store, "views/failures/job.py", job=job)
    assert not page.exception
    link = next(text.value for text in page.markdown if "](my_runs?" in text.value)
    assert link.startswith(f"[Runs and jobs of {owner}]")
    assert f"user={owner}&cluster=demo&period=custom&from=2025-" in link


def test_an_empty_store_says_which_commands_fill_it(
    open_page: Callable[..., AppTest], empty_store: Path
) -> None:
    page = open_page(empty_store, PAGE, user="alice")
    assert not page.exception
    assert "faultline ingest" in page.code[0].value
