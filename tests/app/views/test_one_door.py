"""Whatever a reader sends to any page is opened by one door, and in no process but a bounded one."""

from __future__ import annotations

import ast
import os
import re
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app.actions import Options, ingest_files
from app.actions.mapping import mapped_sources
from data.audit import Audit
from tests.data.ingest import bombs
from tests.data.ingest.bombs import Bomb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from streamlit.testing.v1 import AppTest

APP = Path(__file__).resolve().parents[3] / "app"
SACCT = """\
JobID|Cluster|State|Submit|Start|End|NNodes|AllocTRES|NodeList
1|c|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-02T00:00:00|1|gres/gpu=8|n1
"""
DELAYS = b"source,destination,delay_us\nn1,n2,20\nn2,n1,21\nn1,n3,20\nn3,n1,20\n"
TRACE = b"step,dp_rank,stage,optype,seq_id,mc,start_ts,duration\n"
GIVES_BYTES = {"getvalue", "getbuffer", "read", "readline", "readlines", "read1"}
OPENS_FILES = {"file_uploader", "camera_input", "audio_input", "chat_input", "data_editor"}

SERVER_MB, CHILD_MB = 200, 1_000
"""More that a server may take, and the most of the process that reads."""
SECONDS = 60


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one job: what is sent to it leaves it as it is."""
    folder = tmp_path_factory.mktemp("door")
    (folder / "sacct.txt").write_text(SACCT)
    ingest_files(folder / "store", "sacct", [str(folder / "sacct.txt")], Options())
    return folder / "store"


Sent = tuple[str, bytes, str]


def links(page: AppTest, sent: Sent) -> None:
    page.file_uploader(key="delays").set_value(sent).run()


def switches(page: AppTest, sent: Sent) -> None:
    page.file_uploader(key="delays").set_value(("delays.csv", DELAYS, "text/csv"))
    page.file_uploader(key="switches").set_value(sent).run()


def results(page: AppTest, sent: Sent) -> None:
    page.file_uploader(key="results").set_value(sent).run()


def machines(page: AppTest, sent: Sent) -> None:
    page.file_uploader(key="machines_files").set_value([sent]).run()


def trace(page: AppTest, sent: Sent) -> None:
    page.file_uploader(key="straggler_file").set_value(sent)
    stored(page)


def meta(page: AppTest, sent: Sent) -> None:
    page.file_uploader(key="straggler_file").set_value(("trace.csv", TRACE, "text/csv"))
    page.file_uploader(key="straggler_meta").set_value(sent)
    stored(page)


def stored(page: AppTest) -> None:
    next(each for each in page.button if each.label == "Analyse and store").click().run()


def records(page: AppTest, sent: Sent) -> None:
    page.file_uploader(key="upload_file").set_value(sent).run()
    page.button(key="upload_ingest").click().run()


def of_source(source: str) -> Callable[[AppTest, Sent], None]:
    def send(page: AppTest, sent: Sent) -> None:
        page.selectbox(key="upload_source").set_value(source).run()
        records(page, sent)

    return send


def wizard(source: str) -> Callable[[AppTest, Sent], None]:
    def send(page: AppTest, sent: Sent) -> None:
        page.selectbox(key="upload_source").set_value(source).run()
        page.file_uploader(key="upload_file").set_value(sent).run()
        page.toggle(key="wizard").set_value(True).run()

    return send


def own_mapping(page: AppTest, sent: Sent) -> None:
    page.selectbox(key="upload_source").set_value("job-table").run()
    page.file_uploader(key="upload_own_mapping").set_value(sent)
    records(page, ("jobs.csv", b"a,b\n1,2\n", "text/csv"))


def own_meta(page: AppTest, sent: Sent) -> None:
    page.selectbox(key="upload_source").set_value("straggler-trace").run()
    page.file_uploader(key="upload_meta").set_value(sent)
    records(page, ("trace.csv", TRACE, "text/csv"))


@dataclass(frozen=True)
class Surface:
    """A place of the dashboard that takes a file."""

    page: str
    key: str
    """Of its uploader."""
    send: Callable[[AppTest, Sent], None]
    address: dict[str, str] = field(default_factory=dict)


DATA = ("views/fleet/data.py", {"data_tab": "Add data"})
TRAINING = ("views/training/stragglers.py", {"stragglers_tab": "Add a trace"})
LINKS = {"diagnose_tab": "Links"}
SURFACES = {
    "Links, delays": Surface("views/nodes/diagnose.py", "delays", links, LINKS),
    "Links, switches": Surface("views/nodes/diagnose.py", "switches", switches, LINKS),
    "Validation": Surface(
        "views/nodes/lemons.py", "results", results, {"lemons_tab": "Validation"}
    ),
    "Machines": Surface(
        "views/nodes/diagnose.py", "machines_files", machines, {"metrics_of": "a file"}
    ),
    "Stragglers, trace": Surface(TRAINING[0], "straggler_file", trace, TRAINING[1]),
    "Stragglers, meta": Surface(TRAINING[0], "straggler_meta", meta, TRAINING[1]),
    "Data, auto": Surface(DATA[0], "upload_file", records, DATA[1]),
    **{
        f"Data, {source}": Surface(DATA[0], "upload_file", of_source(source), DATA[1])
        for source in (*sorted(mapped_sources()), "straggler-trace", "dcgm", "gcm-health")
    },
    **{
        f"Data, columns of {source}": Surface(DATA[0], "upload_file", wizard(source), DATA[1])
        for source in sorted(mapped_sources())
    },
    "Data, mapping": Surface(DATA[0], "upload_own_mapping", own_mapping, DATA[1]),
    "Data, meta": Surface(DATA[0], "upload_meta", own_meta, DATA[1]),
}


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """Each call of a method in a module."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func.attr, node


def test_one_module_asks_for_files_and_no_page_opens_one() -> None:
    found = {
        str(path.relative_to(APP))
        for path in APP.rglob("*.py")
        for name, _ in calls(path)
        if name in OPENS_FILES
    }
    assert found == {"widgets/upload.py"}
    opened = [
        (path.name, name)
        for folder in ("views", "widgets")
        for path in (APP / folder).rglob("*.py")
        for name, _ in calls(path)
        if name in GIVES_BYTES
    ]
    assert opened == []


def test_every_uploader_of_every_page_is_one_of_these() -> None:
    keys = [
        next(word.value.value for word in call.keywords if word.arg == "key")  # type: ignore[attr-defined]
        for path in (APP / "views").rglob("*.py")
        for name, call in calls(path)
        if name in ("chosen", "several") and getattr(call.func.value, "id", "") == "upload"  # type: ignore[attr-defined]
    ]
    assert sorted(keys) == sorted({surface.key for surface in SURFACES.values()})


@dataclass
class Taken:
    """What a file cost."""

    server_mb: float = 0.0
    child_mb: float = 0.0
    seconds: float = 0.0
    """Of the processor, server and children."""


def runs_its_program(pid: int) -> bool:
    """Whether a process has left the memory of the one that started it."""
    own = Path("/proc/self/cmdline").read_bytes()
    return Path(f"/proc/{pid}/cmdline").read_bytes() != own


def peak_mb(pid: int | str) -> float:
    """The most memory that a process has held."""
    found = re.search(r"VmHWM:\s*(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1e3 if found else 0.0


def children() -> list[int]:
    """Processes that this one has started, by any of its threads."""
    found: list[int] = []
    for each in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # that thread has ended
            found += map(int, (each / "children").read_text().split())
    return found


@contextmanager
def measured() -> Iterator[Taken]:
    """Memory and processor time of this process, which is the server here, and of its children."""
    taken, ended = Taken(), threading.Event()

    def watch() -> None:
        while not ended.wait(0.005):
            for pid in children():
                try:
                    if runs_its_program(pid):
                        taken.child_mb = max(taken.child_mb, peak_mb(pid))
                except OSError:  # it has ended
                    continue

    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before, began = peak_mb("self"), time.process_time() + sum(os.times()[2:4])
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield taken
    finally:
        ended.set()
        watcher.join()
        taken.server_mb = peak_mb("self") - before
        taken.seconds = time.process_time() + sum(os.times()[2:4]) - began


def said_of(page: AppTest) -> str:
    """What a page says was wrong."""
    return " ".join(each.value for each in page.warning).replace("\\", "")


def held(store: Path) -> dict[str, bytes]:
    """All of a store but its audit, and the lock that says who wrote last."""
    return {
        path.name: path.read_bytes()
        for path in store.rglob("*")
        if path.is_file() and not path.name.startswith(("state.sqlite", "writer.lock"))
    }


def harm(
    surface: str, bomb: Bomb, store: Path, open_page: Callable[..., AppTest]
) -> tuple[Taken, str]:
    """What a bomb costs at one surface, and what the page says."""
    of = SURFACES[surface]
    page, before = open_page(store, of.page, **of.address), held(store)
    with measured() as taken:
        of.send(page, (f"bomb{bomb.suffix}", bomb.content, "application/octet-stream"))
    assert not page.exception, (surface, bomb.name, page.exception[0].value)
    assert held(store) == before
    assert taken.server_mb < SERVER_MB, (surface, bomb.name)
    assert taken.child_mb < CHILD_MB, (surface, bomb.name)
    assert taken.seconds < SECONDS, (surface, bomb.name)
    return taken, said_of(page)


@pytest.mark.slow
@pytest.mark.parametrize("surface", ["Data, columns of job-table", "Links, delays", "Validation"])
def test_a_bomb_costs_the_dashboard_nothing(
    surface: str, store: Path, open_page: Callable[..., AppTest]
) -> None:
    _, said = harm(surface, bombs.bomb("parquet-dictionary"), store, open_page)
    assert said
    assert "broken" not in said
    assert "/tmp" not in said


WHOLE = ("Links, delays", "Machines", "Data, job-table", "Data, columns of job-table")
"""Surfaces, one of each way of reading, that meet every bomb; the others one of each format."""


def met_at(surface: str) -> list[Bomb]:
    """The bombs of a surface: which of a format follows from its place among the surfaces."""
    if surface in WHOLE:
        return [*bombs.all_bombs()]
    place = [*SURFACES].index(surface)
    of_format: dict[str, list[Bomb]] = {}
    for each in bombs.all_bombs():
        of_format.setdefault(each.format, []).append(each)
    return [found[place % len(found)] for found in of_format.values()]


@pytest.mark.slow
@pytest.mark.parametrize("surface", SURFACES)
def test_every_kind_of_bomb_at_every_surface(
    surface: str, store: Path, open_page: Callable[..., AppTest]
) -> None:
    print(
        "\n| surface | bomb | server, MB more | process, MB | processor s | said |\n|-|-|-|-|-|-|"
    )
    for bomb in met_at(surface):
        taken, said = harm(surface, bomb, store, open_page)
        print(
            f"| {surface} | {bomb.name} | {taken.server_mb:.0f} | {taken.child_mb:.0f} "
            f"| {taken.seconds:.1f} | {said} |"
        )
        if bomb.valid:  # may be read without a word
            assert "broken" not in said, (surface, bomb.name, said)
        else:
            assert said, (surface, bomb.name)


@pytest.mark.slow
def test_what_is_looked_into_stands_in_the_audit(
    store: Path, open_page: Callable[..., AppTest]
) -> None:
    before = len(Audit(store).entries(action="upload"))
    for surface in ("Links, switches", "Validation", "Machines", "Stragglers, trace"):
        page = open_page(store, SURFACES[surface].page, **SURFACES[surface].address)
        SURFACES[surface].send(page, (f"{surface}.csv", b"a,b\n1,2\n", "text/csv"))
    found = [each.target for each in Audit(store).entries(action="upload")][: -before or None]
    assert found == ["Machines.csv", "Validation.csv", "Links, switches.csv", "delays.csv"]
