"""faultline annotate: said, listed, undone, refused."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path, sacct_store: Path) -> Path:
    """A store of one's own."""
    shutil.copytree(sacct_store, tmp_path / "store")
    return tmp_path / "store"


def test_a_cause_is_said_listed_and_undone(faultline: Callable[..., Any], store: Path) -> None:
    made = faultline("annotate", "node:c/n2", "--cause", "pcie", "--store", store).json
    assert (made["target"], made["field"], made["value"]) == ("node:c/n2", "cause", "pcie")
    assert made["undone_at"] is None
    said = faultline("annotate", "node:c/n2", "--note", "loose, see 7", "--store", store).json
    undone = faultline("annotate", "--undo", made["annotation_id"], "--store", store).json
    assert undone["undone_by"] == undone["author"]
    assert faultline("annotate", "--list", "--store", store).json == [said, undone]
    assert faultline("annotate", "node:c/n1", "--list", "--store", store).json == []


def test_the_list_as_csv_and_as_a_table(faultline: Callable[..., Any], store: Path) -> None:
    faultline("annotate", "node:c/n2", "--status", "open", "--store", store)
    listed = ("annotate", "--list", "--store", store, "--format")
    header, row = faultline(*listed, "csv").out.splitlines()
    assert header == "annotation_id,target,author,made_at,field,value,undone_at,undone_by"
    assert row.endswith(",status,open,,")
    assert "node:c/n2" in faultline(*listed, "table").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("node:c/n2", "--cause", "pci"), "cause 'pci' is unknown: did you mean 'pcie'?"),
        (("node:c/n9", "--note", "x"), "node:c/n9: the store holds no such node: did you mean"),
        (("attempt:c/2", "--note", "x"), "did you mean attempt:c/"),
        (("--note", "x"), "name a TARGET, e.g."),
        (("node:c/n2", "--undo", "x"), "--undo takes the id of an annotation alone"),
        (("--undo", "x"), "annotation 'x' is unknown"),
        (
            ("node:c/n2",),
            (
                "one of the arguments --cause --note --status --owner --assignee --remedy --merged-into "
                "--incident --undo --restore --list is required"
            ),
        ),
        (("node:c/n2", "--cause", "pcie", "--note", "x"), "not allowed with argument --cause"),
    ],
)
def test_what_cannot_be_said_is_refused_in_one_line(
    refused: Callable[..., str], store: Path, arguments: tuple[str, ...], message: str
) -> None:
    assert message in refused("annotate", *arguments, "--store", store)


def test_a_list_of_no_store_is_refused(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "holds no store" in refused("annotate", "--list", "--store", tmp_path / "none")
