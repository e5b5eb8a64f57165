"""Meta files of straggler traces."""

from __future__ import annotations

from pathlib import Path

import pytest

from data.errors import SourceError
from data.ingest.readers.training.straggler_trace import TraceMeta, read_meta

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data" / "straggler"
META = """# a job
---
trial_name: "a: b"  # quoted
run_id: 17
dp_size: 4
dsp_size: 2

pp_size: 2   # stages
tp_size: '8'
vpp_size: 3
world_size: 128
owner: somebody
"""


def read(folder: Path, text: str) -> TraceMeta:
    path = folder / "meta.yaml"
    path.write_text(text, encoding="utf-8")
    return read_meta(path, path.name)


def test_sizes_and_names_are_read(tmp_path: Path) -> None:
    assert read(tmp_path, META) == TraceMeta(
        trial_name="a: b",
        run_id=17,
        dp_size=4,
        pp_size=2,
        tp_size=8,
        dsp_size=2,
        vpp_size=3,
        world_size=128,
    )


def test_names_and_the_world_size_may_be_absent(tmp_path: Path) -> None:
    lines = ("trial_name", "run_id", "world_size", "owner")
    text = "\r\n".join(line for line in META.splitlines() if not line.startswith(lines))
    found = read(tmp_path, text)
    assert (found.trial_name, found.run_id, found.world_size) == (None, None, 128)
    assert read(tmp_path, META.replace("17", "warm start")).run_id == "warm start"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("dp_size: 4", "dp_size: 0", "dp_size must be a positive whole number, got '0'"),
        ("dp_size: 4", "dp_size: -4", "dp_size must be a positive whole number, got '-4'"),
        ("dp_size: 4", "dp_size: 4.0", "dp_size must be a positive whole number, got '4.0'"),
        ("dp_size: 4", "dp_size: four", "dp_size must be a positive whole number, got 'four'"),
        ("dp_size: 4", "dp_size:", "states no dp_size: add a line"),
        ("dp_size: 4", "# 4", "states no dp_size: add a line"),
        ("dp_size: 4", "dp_size: 5", "world_size must be .* = 160, got 128"),
        ("dp_size: 4", "dp_size 4", "line 5 must be `key: value`, got 'dp_size 4'"),
        ("dp_size: 4", "sizes:\n  dp_size: 4", "line 6 must be `key: value`"),
        ("pp_size: 2", "dp_size: 4", "line 8 states dp_size again"),
        ("world_size: 128", "world_size: many", "world_size must be a positive whole number"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(SourceError, match=rf"meta\.yaml: {message}"):
        read(tmp_path, META.replace(old, new))


def test_an_absent_or_binary_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no such file"):
        read_meta(tmp_path / "none.yaml", "none.yaml")
    with pytest.raises(SourceError, match="cannot be read"):
        read_meta(tmp_path, "a folder")
    (tmp_path / "x.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SourceError, match="cannot be read"):
        read_meta(tmp_path / "x.yaml", "x.yaml")


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"real traces are not at {SHARED}")
@pytest.mark.parametrize(("name", "gpus"), [("AR", 64), ("SE", 128), ("ST", 8)])
def test_the_published_meta_files_are_read(name: str, gpus: int) -> None:
    found = read_meta(SHARED / f"meta-{name}.yaml", name)
    assert (found.trial_name, found.run_id, found.world_size) == (name, 0, gpus)
