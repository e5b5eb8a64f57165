"""A format that nobody reads is named, with the nearest that is; no reader takes it by mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.actions import DataError, Options, ingest_files

REAL = Path(__file__).parents[4] / "shared" / "data" / "collect"
needs_files = pytest.mark.skipif(not REAL.exists(), reason="no ../shared/data/collect here")
TOLD = {
    "kernel/m4/gpu.query.0.txt": "is output of nvidia-smi -q, which is not supported yet: the kernel log",
    "kernel/gpud/nvidia-smi.nvlink.status.a100": "is output of nvidia-smi nvlink, which is not supported yet",
    "node_inventory/clockwork/scontrol_job_2": "is output of scontrol show job, which is not supported yet",
    "kubernetes/is-healthy/Job/healthy.yaml": "is YAML of Kubernetes, which is not supported yet: JSON",
    "kubernetes/is-healthy/Pod/healthy.yaml": "give what `kubectl get pods -A -o json",
    "kernel/gpud_infiniband/mlx5_0/ports/1/counters/symbol_error": "is of no format known",
}


def refused(path: Path, folder: Path) -> str:
    with pytest.raises(DataError) as error:
        ingest_files(folder / "store", "auto", [str(path)], Options())
    assert "\n" not in str(error.value)
    return str(error.value)


@needs_files
@pytest.mark.parametrize("name", TOLD)
def test_published_files_of_other_formats_are_named(tmp_path: Path, name: str) -> None:
    path = REAL / name
    assert TOLD[name] in refused(next(path.iterdir()) if path.is_dir() else path, tmp_path)


@pytest.mark.parametrize(
    ("head", "told"),
    [
        (b"PK\x03\x04" + bytes(99), "a workbook of Excel"),
        (b"%PDF-1.7\n" + b"x" * 99, "a PDF"),
        (b"\x89PNG\r\n" + bytes(99), "a picture"),
        (b"SQLite format 3\0" + bytes(99), "a database of SQLite"),
        (b"\xd4\xc3\xb2\xa1" + bytes(99), "a capture of packets"),
        (
            b"             JOBID PARTITION     NAME\n 1 p x\n",
            "is output of squeue, which is not supported yet",
        ),
        (b"Linux 5.15.0 (n1) \t03/01/24 \t_x86_64_\t(96 CPU)\n\n12:00 CPU\n", "sysstat"),
        (b"# How we train\n\nA page.\n", "is a document, which"),
    ],
)
def test_a_format_is_told_by_its_beginning(tmp_path: Path, head: bytes, told: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(head)
    assert told in refused(path, tmp_path)
