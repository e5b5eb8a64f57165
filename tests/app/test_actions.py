"""What a person does to a store: what they say holds at once and through every publish."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import pytest

from app import actions
from app.actions import Options
from data.errors import DataError
from data.state import State
from data.store import Store
from data.synthetic import DemoSpec

SACCT = """\
JobID|Cluster|SLUID|State|Submit|Start|End|NNodes|AllocTRES|NodeList
1|c|sA1|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-02T00:00:00|1|gres/gpu=8|n1
2|c|sA2|NODE_FAIL|2026-01-02T00:00:00|2026-01-02T00:00:00|2026-01-03T00:00:00|1|gres/gpu=8|n1
"""


def read(root: Path, text: str = SACCT) -> None:
    path = root.parent / "sacct.txt"
    path.write_text(text)
    actions.ingest_files(root, "sacct", [str(path)], Options())


@pytest.fixture(scope="module")
def read_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of both jobs; only to be copied."""
    root = tmp_path_factory.mktemp("read") / "store"
    read(root)
    return root


@pytest.fixture
def root(read_store: Path, tmp_path: Path) -> Path:
    """The same store, to be written to."""
    return Path(shutil.copytree(read_store, tmp_path / "store"))


def test_what_is_said_holds_until_it_is_undone(root: Path) -> None:
    made = actions.annotate(root, "attempt:c/sA2", "cause", "pcie", author="ada")
    assert (made.target, made.field, made.value, made.author) == (
        "attempt:c/sA2", "cause", "pcie", "ada",
    )  # fmt: skip
    assert [row[0] for row in State(root).annotations()] == [made.annotation_id]
    actions.undo(root, made.annotation_id, author="grace")
    assert State(root).annotations() == []


def test_who_says_it_is_the_login_user_where_nobody_is_named(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "grace")
    assert actions.annotate(root, "node:c/n1", "note", "  loose riser ").author == "grace"
    assert State(root).annotations()[0][5] == "loose riser"


def test_a_cause_of_the_site_can_be_said(root: Path) -> None:
    with pytest.raises(DataError, match="cause 'licence' is unknown"):
        actions.annotate(root, "attempt:c/sA2", "cause", "licence")
    (root / "site.toml").write_text(
        '[taxonomy.causes.licence]\ntitle = "No licence"\ndomain = "user"\n'
    )
    assert actions.annotate(root, "attempt:c/sA2", "cause", "licence").value == "licence"


def test_annotations_survive_another_ingest(root: Path) -> None:
    made = actions.annotate(root, "attempt:c/sA2", "cause", "pcie")
    for text in (SACCT, SACCT.replace("01-03T00", "01-03T05").replace("n1", "n2")):
        read(root, text)
        assert [row[0] for row in State(root).annotations()] == [made.annotation_id]
    with contextlib.closing(Store.open(root)) as store:
        said = store.rows("""SELECT annotation_id, value FROM annotations JOIN jobs
                             ON target = 'attempt:' || jobs.cluster || '/' || attempt_key""")
        assert said == [(made.annotation_id, "pcie")]


@pytest.mark.slow
def test_annotations_survive_a_demo_that_is_built_anew(tmp_path: Path) -> None:
    spec = DemoSpec.of(500, 16, None, 3)
    truth = actions.build_demo(tmp_path, spec).truth
    target = f"attempt:demo/{truth.as_dict()['attempts'][0]['attempt_key']}"
    made = actions.annotate(tmp_path, target, "cause", "nic")
    actions.build_demo(tmp_path, spec)
    assert [row[0] for row in State(tmp_path).annotations()] == [made.annotation_id]
    assert actions.annotate(tmp_path, target, "status", "resolved").target == target


@pytest.mark.parametrize(
    ("target", "field", "value", "message"),
    [
        ("attempt:c/sA2", "cause", "nvlnk", r"cause 'nvlnk' is unknown: did you mean 'nvlink'\?"),
        ("attempt:c/sA2", "cause", "GPU memory", r"did you mean 'gpu_memory'\?"),
        ("attempt:c/sA2", "cause", "", r"cause '' is unknown: there are attribute_error, "),
        ("attempt:c/sA2", "status", "done", "there are open, acknowledged, resolved"),
        ("attempt:c/sA2", "note", " \n", "note holds 1 to 10,000 characters, got 0"),
        ("attempt:c/sA2", "note", "x" * 10_001, "note holds 1 to 10,000 characters, got 10,001"),
        (
            "attempt:c/sA2",
            "owns",
            "ada",
            "field must be one of cause, note, status, owner, .*, got 'owns'",
        ),
        ("attempt:c/2", "note", "x", r"no such attempt: did you mean attempt:c/sA2\?"),
        ("attempt:c/zz9", "note", "x", "no such attempt: `faultline failures --list` shows"),
        ("incident:9", "note", "x", "no such incident: `faultline incidents` shows them"),
        ("node:n1", "note", "x", r"no such node: did you mean node:c/n1\?"),
        ("n1", "note", "x", "target 'n1' is none: write attempt:CLUSTER/KEY, incident:ID or"),
        ("rack:r1", "note", "x", "target 'rack:r1' is none"),
    ],
)
def test_what_the_store_or_the_taxonomy_does_not_hold_is_refused(
    root: Path, target: str, field: str, value: str, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        actions.annotate(root, target, field, value)
    assert State(root).annotations() == []


def test_nothing_is_said_where_there_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no store"):
        actions.annotate(tmp_path, "node:c/n1", "note", "x")
    with pytest.raises(DataError, match="holds no store"):
        actions.undo(tmp_path, "x")
    assert not list(tmp_path.iterdir())
