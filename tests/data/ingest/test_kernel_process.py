"""The process in the line of an XID."""

from __future__ import annotations

import pytest

from data.ingest.readers.logs.kernel_events import process_of

START = "NVRM: Xid (PCI:0000:9b:00): "


@pytest.mark.parametrize(
    ("rest", "pid", "name"),
    [
        ("119, pid=2024380, name=nvidia-smi, Timeout after 6s of waiting", 2024380, "nvidia-smi"),
        ("79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", None, None),
        ("79, pid=1234, name=<unknown>, GPU has fallen off the bus.", 1234, None),
        ("79, GPU has fallen off the bus.", None, None),
        ("31, pid=7, name=my prog, Ch 00000008, intr 10000000. MMU Fault", 7, "my prog"),
        ("31, pid=7, name=a, b c, Ch 00000008, intr 10000000", 7, "a, b c"),
        ("13, pid=7, name=x,y, Graphics Exception: Shader Program Header", 7, "x,y"),
        ("45, pid=7, name=pt_main_thread, channel 0x00000012", 7, "pt_main_thread"),
        ("45, pid=7, name=train.py", 7, "train.py"),
        ("45, pid=7, Ch 00000010", 7, None),
        ("31, name=server, channel 0x09, MMU Fault: ENGINE GRAPHICS", None, "server"),
        ("43, pid=7, name=p, a text the driver never wrote, so far", 7, "p"),
        ("31, pid=7, name=python3, some words of a new driver, Ch 00000008", 7, "python3"),
        ("63, Row remapping event: pid=7, name=x", None, None),
        ("145, RLW_REMAP Nonfatal XC0 i0 Link 00 (0x00000004 0x00000001)", None, None),
    ],
)
def test_pid_and_name_are_read_as_the_driver_writes_them(
    rest: str, pid: int | None, name: str | None
) -> None:
    assert process_of(START + rest) == (pid, name)


def test_an_instance_of_a_divided_gpu_does_not_hide_the_process() -> None:
    message = "NVRM: Xid (PCI:0000:01:00 GPU-I:05): 13, pid=9, name=python, Graphics SM Warp"
    assert process_of(message) == (9, "python")
