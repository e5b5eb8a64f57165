"""Find: one text, what is called so in the store and the catalogs, and what it says as a log."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from app.actions import Options, ingest_files, kept_queries, save_query
from app.answers.explore import find
from app.ask import of_store
from app.cli import main
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.answers.content import Answer

SACCT = """\
JobID|Cluster|JobName|User|State|Submit|Start|End|NNodes|AllocTRES|NodeList|FailedNode
79|c|pretrain|Alice|NODE_FAIL|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-05T10:00:00|2|gres/gpu=16|gpu[1-2]|gpu2
790|c|eval|alice2|COMPLETED|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-05T10:00:00|1|gres/gpu=8|gpu10|
"""
KERNEL = "[ 1.0] NVRM: Xid (PCI:0000:87:00): 79, pid=1, name=python3, GPU has fallen off the bus."


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    folder = tmp_path_factory.mktemp("find")
    (folder / "sacct.txt").write_text(SACCT)
    ingest_files(folder / "store", "sacct", [str(folder / "sacct.txt")], Options(timezone="UTC"))
    save_query(folder / "store", "Nodes that fail", "FROM nodes", author="a")
    with closing(Store.open(folder / "store")) as opened:
        yield opened


def found(store: Store, text: str) -> Answer:
    return find.answer(of_store(store), text, kept_queries(store.root).saved())


def names(store: Store, text: str) -> dict[str, list[object]]:
    return {table.key: [row[0] for row in table.values] for table in found(store, text).blocks}  # type: ignore[union-attr]


def test_a_number_is_a_code_a_job_and_a_run_and_the_exact_one_comes_first(store: Store) -> None:
    hits = names(store, "79")
    assert hits["codes"] == ["XID 79"]
    assert hits["jobs"] == ["79", "790"]
    assert hits["runs"] == ["79"]
    assert next(iter(hits)) == "codes"


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("ALICE", "users", ["Alice", "alice2"]),
        ("GPU1", "nodes", ["gpu1", "gpu10"]),
        ("pretr", "jobs", ["79"]),
        ("node_lost", "incidents", None),
        ("missing key", "causes", ["Missing key (KeyError)"]),
        ("fail nodes", "queries", ["FROM nodes"]),
        ("sxid 11001", "codes", ["SXid 11001"]),
        ("xid94", "codes", ["XID 94"]),
    ],
)
def test_each_kind_is_found_in_any_letter_case(
    store: Store, text: str, kind: str, expected: list[str] | None
) -> None:
    hits = names(store, text).get(kind, [])
    assert hits == expected if expected is not None else len(hits) == 1


def test_a_line_of_the_kernel_gives_its_verdict_and_its_code(store: Store) -> None:
    answer = found(store, KERNEL)
    assert answer.sentence == "Found 1 verdict, 1 code."
    (verdict,) = answer.table("verdict").values
    assert verdict[1] == "hardware"
    assert "fallen off the bus" in verdict[4]


def test_the_end_of_a_log_gives_its_verdict_and_the_line_that_says_it(store: Store) -> None:
    log = "step 12 | loss 1.9\nTraceback (most recent call last):\nKeyError: 'mask'\n"
    (verdict,) = found(store, log).table("verdict").values
    assert verdict[:2] == ("Missing key (KeyError)", "user program")
    assert verdict[4] == "KeyError: 'mask'"


@pytest.mark.parametrize("text", ["nobody", "", "%", "' OR 1=1 --", "all is well here"])
def test_what_nothing_is_called_says_what_can_be_asked(store: Store, text: str) -> None:
    answer = found(store, text)
    assert answer.blocks == ()
    assert answer.sentence.startswith("Nothing has this name. Ask for a job, node, user")


def test_the_command_prints_the_same_and_hides_names(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    of = ["--store", str(store.root), "--format"]
    assert main(["find", "alice", *of, "json"]) == 0
    assert [row["user"] for row in json.loads(capsys.readouterr().out)["users"]] == [
        "Alice",
        "alice2",
    ]
    assert main(["find", "alice", *of, "json", "--redact"]) == 0
    hidden = capsys.readouterr().out
    assert "lice" not in hidden
    assert main(["find", "79", *of, "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[:3] == ["kind,name", "codes,XID 79", "jobs,79"]
