"""Job: the site's own language model is asked when somebody presses the button, and not before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app import actions
from tests.data.language_server import WELL, Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

PAGE = "views/failures/job.py"
SACCT = """\
JobID|Cluster|JobName|User|State|Submit|Start|End|NNodes|AllocTRES|NodeList
79|alps|glacier|heidi|FAILED|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-05T10:00:00|1|gres/gpu=8|n1
80|alps|glacier|heidi|FAILED|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-05T10:00:00|1|gres/gpu=8|n2
"""
LOG = "a\nb of heidi\nc\nd\nthe frobnicator has come to rest\n"


@pytest.fixture
def server() -> Iterator[Server]:
    started = Server()
    yield started
    started.http.shutdown()
    started.http.server_close()


@pytest.fixture
def store(tmp_path: Path, server: Server) -> Path:
    root, logs = tmp_path / "store", tmp_path / "logs"
    logs.mkdir()
    (tmp_path / "sacct.txt").write_text(SACCT)
    (logs / "run.79.txt").write_text(LOG)
    (logs / "run.80.txt").write_text(
        "RuntimeError: CUDA error: uncorrectable ECC error encountered\n"
    )
    actions.ingest_files(
        root, "sacct", [str(tmp_path / "sacct.txt")], actions.Options(timezone="UTC")
    )
    actions.ingest_files(
        root, "job-log", [str(logs)], actions.Options(pattern="run.%j.txt", cluster="alps")
    )
    (root / "site.toml").write_text(
        f'[language_model]\naddress = "{server.url}/v1"\nmodel = "llama"\n'
    )
    return root


def buttons(page: AppTest) -> list[str]:
    return [button.label for button in page.button if "language model" in button.label]


@pytest.mark.slow
def test_the_button_asks_and_the_page_shows_whose_opinion_it_is(
    open_page: Callable[..., AppTest], store: Path, server: Server
) -> None:
    page = open_page(store, PAGE, job="79", cluster="alps")
    assert not page.exception
    assert buttons(page) == ["Ask the language model llama"]
    assert not server.asked
    server.says(WELL, {"total_tokens": 950})
    next(button for button in page.button if "language" in button.label).click().run()
    assert not page.exception
    assert len(server.asked) == 1
    assert "heidi" not in server.asked[0][2]["messages"][1]["content"]
    (said,) = (text.value for text in page.markdown if "Third opinion" in text.value)
    assert "run.79.txt:5; not counted in any rate" in said.replace("\\", "")
    assert any("In all: 1 call, 950 tokens" in caption.value for caption in page.caption)
    assert buttons(open_page(store, PAGE, job="80", cluster="alps")) == []  # the rules know it
    (store / "site.toml").unlink()
    assert buttons(open_page(store, PAGE, job="79", cluster="alps")) == []
