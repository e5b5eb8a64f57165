"""Stores whose reports are looked at: the demo, and one whose records hold all that is awkward."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app.actions import Options, ingest_files
from app.answers.failures import incidents
from app.reports import kinds
from app.show import files
from data.filters import Selection
from data.state import State
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from app.reports.report import Report

NOW = datetime(2026, 3, 2, 6, tzinfo=UTC)
"""When what is to be done now is asked."""
SACCT = """\
JobID|Cluster|Partition|Account|User|JobName|State|Submit|Start|End|NNodes|AllocTRES|NodeList
1|c|gpu|physics|alice|train-70b|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-20T00:00:00|1|gres/gpu=8|n1
2|c|gpu|physics|alice|=cmd()|NODE_FAIL|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-07T00:00:00|2|gres/gpu=16|n[2-3]
3|c|gpu|bio|bob_k|<script>alert(1)</script>|NODE_FAIL|2026-01-12T00:00:00|2026-01-12T00:00:00|2026-01-14T00:00:00|1|gres/gpu=8|n2
4|c|gpu|bio|bob_k|train-70b|FAILED|2026-01-12T00:00:00|2026-01-12T00:00:00|2026-01-15T00:00:00|1|gres/gpu=8|n4
"""
EVENTS = """\
ClusterName|NodeName|TimeStart|TimeEnd|State|Reason|User
c|n2|2026-01-14T00:00:00|2026-01-15T00:00:00|DOWN|=HYPERLINK("x") bob_k saw <b>smoke</b>|alice(1001)
c|n3|2026-01-19T00:00:00|Unknown|DRAIN|waits for alice, see ~carol/notes|alice(1001)
"""
LOG = """\
loading /home/bob_k/data/shards for train-70b
Traceback (most recent call last):
  File "/home/dave/run.py", line 3, in <module>
    open("/scratch/bob_k/missing")
FileNotFoundError: [Errno 2] No such file or directory: '/scratch/bob_k/missing'
"""
NAMES = ("alice", "bob_k", "carol", "dave", "erin", "physics", "bio", "train-70b", "cmd()")
"""Everything in the awkward store that names a person or what they run."""


@pytest.fixture(scope="session")
def awkward_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Names of people in columns, texts and paths; formulas, markup and open outages; held open."""
    folder = tmp_path_factory.mktemp("awkward")
    root = folder / "store"
    for source, name, content in (
        ("sacct", "sacct.txt", SACCT),
        ("sacctmgr-events", "events.txt", EVENTS),
        ("job-log", "slurm-4.out", LOG),
    ):
        (folder / name).write_text(content, encoding="utf-8")
        ingest_files(root, source, [str(folder / name)], Options(cluster="c"))
    store = Store.open(root)
    ids = incidents.rows(store, Selection(), incidents.Kind(), limit=9)["incident_id"]
    store.close()
    for incident_id in ids:
        State(root).annotate(f"incident:{incident_id}", "note", "=1+1 ask alice", author="erin")
    with closing(Store.open(root)):
        yield root


@pytest.fixture
def awkward(awkward_store: Path) -> Iterator[Store]:
    """The same, open."""
    store = Store.open(awkward_store)
    yield store
    store.close()


@pytest.fixture(scope="session")
def reports(demo_store: Path) -> dict[str, Report]:
    """A report of each kind of the demo."""
    store = Store.open(demo_store)
    ((node,),) = store.rows(
        "SELECT node FROM failures WHERE node IS NOT NULL AND method = 'health_event' "
        "GROUP BY node ORDER BY count(*) DESC, node LIMIT 1"
    )
    about = {"incident": "largest", "node": node}
    made = {
        kind: kinds.report(store, kind, Selection(), about=about.get(kind, ""), now=NOW)
        for kind in kinds.kinds()
    }
    store.close()
    return made


@pytest.fixture(scope="session")
def written(reports: dict[str, Report]) -> Callable[[str, str], bytes]:
    """The file of a kind of report in a form, written once: `written("fleet", "pdf")`."""
    return cache(lambda kind, form: files.render(reports[kind], form))
