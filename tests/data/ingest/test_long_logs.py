"""A long log: every line is looked at, and a decisive one is found wherever it stands."""

from __future__ import annotations

import random
import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from analytics.failures.log_classifier import classify_log
from data.ingest.formats.log_lines import lines_of_log

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PLANTED = {
    "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.": "gpu_unavailable",
    "[rank7]: RuntimeError: CUDA error: uncorrectable ECC error encountered": "gpu_memory",
    "amdgpu 0000:c1:00.0: amdgpu: uncorrectable hardware errors detected in UMC block": "gpu_memory",
    "[8123.4] mlx5_core 0000:41:00.0: Port: 1 Link DOWN": "ib_link",
    "mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 7: be00000000800400": "cpu",
}
END = (
    "[rank4]: Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE)",
    "srun: error: node7: task 4: Aborted",
)
FIRST, LAST = 200, 1_000


def ordinary(n: int, rng: random.Random) -> Iterator[str]:
    """Lines of a training run, with words that rules look for in what means nothing."""
    for step in range(n):
        if step % 5 == 0:
            yield f"Epoch {step}: {'#' * (step // 5 % 40)} {rng.random():.2f}it/s, 0 errors"
        elif step % 97 == 0:
            yield f"saved shard {rng.randrange(512)} to /lustre/{rng.getrandbits(64):016x}/ckpt.pt"
        else:
            yield f"[rank{step % 64}]: 2026-03-01 INFO step {step} loss {rng.random():.4f} gpu 0"


def plants(n: int) -> list[tuple[int, str, str]]:
    """Places, lines and their causes."""
    rng = random.Random(11)
    chosen = [rng.choice(list(PLANTED)) for _ in range(n)]
    return [(rng.randrange(20_000), line, PLANTED[line]) for line in chosen]


@pytest.mark.parametrize(
    ("place", "line", "cause"),
    [*plants(2), *(pytest.param(*one, marks=pytest.mark.slow) for one in plants(50)[2:])],
)
def test_a_decisive_line_is_found_wherever_it_stands(
    tmp_path: Path, place: int, line: str, cause: str
) -> None:
    log = tmp_path / "log"
    lines = list(ordinary(20_000, random.Random(place)))
    lines.insert(place, line)
    log.write_text("\n".join([*lines, *END]), encoding="utf-8")
    found = lines_of_log(log, FIRST, LAST, longest=8_192)
    verdict = classify_log(found.lines)
    assert (verdict.cause, found.n_lines) == (cause, 20_003)
    assert found.numbers[verdict.evidence[0].line - 1] == place + 1


def test_lines_are_those_of_the_file_with_their_numbers(tmp_path: Path) -> None:
    log, rng = tmp_path / "log", random.Random(5)
    lines = [line + "\r" * (rng.random() < 0.1) for line in ordinary(9_000, rng)]
    log.write_bytes("\n".join(lines).encode())
    found = lines_of_log(log, FIRST, LAST, longest=8_192)
    assert list(found.numbers) == sorted(set(found.numbers))
    assert found.numbers[:FIRST] == tuple(range(1, FIRST + 1))
    assert found.numbers[-LAST:] == tuple(range(9_001 - LAST, 9_001))
    assert found.lines == tuple(lines[number - 1].rstrip("\r") for number in found.numbers)
    assert len(found.lines) < FIRST + LAST + 1_500  # what repeats is kept some times


def test_blocks_make_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    lines = [*ordinary(3_000, random.Random(6)), "é" * 9_000, "RuntimeError: x", *["-"] * 2_000]
    log.write_bytes("\n".join(lines).encode())
    whole = lines_of_log(log, FIRST, LAST, longest=8_192)
    monkeypatch.setattr("data.ingest.formats.log_lines._BLOCK", 1_000)
    assert lines_of_log(log, FIRST, LAST, longest=8_192) == whole
    assert 3_002 in whole.numbers


def test_a_decisive_line_is_not_lost_among_many_that_hold_words_of_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("data.ingest.formats.log_lines.MOST_BETWEEN", 500)
    rng = random.Random(3)
    lost = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus."
    noise = [
        f"{rng.getrandbits(64):016x} gpu pcie nvlink queue {rng.getrandbits(64):016x}"
        for _ in range(3_000)
    ]
    log = tmp_path / "log"
    log.write_text("\n".join([*noise[:400], lost, *noise[400:], *END]), encoding="utf-8")
    assert 401 in lines_of_log(log, 100, 100, longest=8_192).numbers


def test_a_line_without_an_end_is_held_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("data.ingest.formats.log_lines._BLOCK", 1_000)
    monkeypatch.setattr("data.ingest.formats.log_lines._HELD", 101)
    log = tmp_path / "log"
    log.write_text("a\n" + "é" * 5_000 + "end\nlast", encoding="utf-8")
    found = lines_of_log(log, 1, 10, longest=20)
    assert found.lines == ("a", "é" * 17 + "end", "last")


def processor_seconds(*command: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=False, capture_output=True, env={"LC_ALL": "C.UTF-8"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


WORDS = (
    "error|exception|fatal|traceback|xid|nccl|timeout|killed|oom|out of memory|segfault|abort|panic"
    "|ecc|nvlink|uncorrect|unreachable|refused|denied|fail"
)


@pytest.mark.benchmark
def test_100_mb_cost_at_most_ten_times_a_search_for_20_words(tmp_path: Path) -> None:
    log, short = tmp_path / "log", tmp_path / "short"
    text = "\n".join(ordinary(1_900_000, random.Random(7)))[:100_000_000]
    log.write_text(f"{text}\n", encoding="utf-8")
    short.write_text("step 1\nRuntimeError: x\n", encoding="utf-8")
    command = (sys.executable, "-m", "app.cli", "classify")
    costs = sorted(
        (
            processor_seconds(*command, str(log)) - processor_seconds(*command, str(short)),
            processor_seconds("grep", "-ciE", WORDS, str(log)),
        )
        for _ in range(3)
    )
    ours, floor = costs[1]
    print(f"{log.stat().st_size / 1e6:.0f} MB: {ours:.2f} s beyond start-up, grep {floor:.2f} s")
    assert ours <= 10 * floor
