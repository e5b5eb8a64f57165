"""Words in a log that nobody says of this job, and words that only look so."""

from __future__ import annotations

from pathlib import Path

import pytest

from analytics.failures.log_classifier import classify_log

XID = "NVRM: Xid (PCI:0000:9b:00): 79, pid=31, GPU has fallen off the bus."
ECC = "CUDA error: uncorrectable ECC error encountered"
STEPS = [f"step {number} loss {2.5 - number / 100:.3f}" for number in range(6)]
TYPE_ERROR = [
    "Traceback (most recent call last):",
    '  File "/w/train.py", line 3, in <module>',
    "TypeError: 'float' object is not callable",
]


@pytest.mark.parametrize(
    "quoted",
    [
        ["+ cat docs/RUNBOOK.md", f"  {ECC}", "drain the node", "+ python train.py"],
        ["+ sed -n 1,9p watch.sh", f"grep {ECC} log && exit 3", "+ python train.py"],
        [f"> your last job died of {XID}"],
        [f"[launcher] previous attempt failed with: RuntimeError: {ECC} (gn4, now excluded)"],
        [f'{{"id": 17, "prompt": "what does {XID} mean", "answer": "drain"}}'],
        [f"[prompt] {XID} What should the operator do?"],
        [f"tests/test_faults.py::test_restart_on[{XID}] PASSED [ 20%]"],
        [f'restart_on: ["{ECC}", "fallen off the bus"]', f'  - "{ECC}"'],
        ["reading /data/corpus/gpu has fallen off the bus.txt"],
        ["-- node gn9 history", f"2025-03-01T08:11 drain {XID}", "2025-04-01T10:00 resume"],
    ],
    ids=lambda quoted: quoted[0][:24],
)
def test_quoted_text_does_not_count(quoted: list[str]) -> None:
    verdict = classify_log([*quoted, *TYPE_ERROR])
    assert (verdict.cause, verdict.alternatives) == ("type_error", ())


@pytest.mark.parametrize(
    "said",
    [
        [f'level=error msg="{XID}"'],
        [f'{{"level": "error", "msg": "rank 3: {XID}"}}'],
        [f'srun: epilog: node gn3 drained, Reason="{XID}"'],
        [f'worker failed with "{XID}"'],
        ["+ dmesg -T", f"[Mon May  5 10:01:00 2025] {XID}", "+ exit 1"],
        ["+ tail -n 3 logs/rank7.err", XID, "+ exit 1"],
        ["+ cat README.md", XID],
        ["2025-05-05 10:00:00 health history of gpu read", f"2025-05-05 10:01:00 {XID}",
         "2025-05-06 10:00:00 exit code 1"],
        [f"2025-03-01T10:20:00.1Z stderr F {XID}"],
        [f"\ufefftrainer-1  | {XID}"],
        [f"[1,0]<stderr>:{XID}"],
    ],
    ids=lambda said: said[0][:24],
)  # fmt: skip
def test_what_a_line_says_itself_counts(said: list[str]) -> None:
    verdict = classify_log([*STEPS, *said, "srun: error: gn3: task 0: Exited with exit code 1"])
    assert verdict.cause == "gpu_unavailable"


def test_a_line_that_the_job_survived_gives_way_to_the_exception_that_ended_it() -> None:
    link = "gn7 kernel: mlx5_core 0000:17:00.0 mlx5_2: Port: 1 Link down"
    assert classify_log([link, *STEPS, *TYPE_ERROR]).cause == "type_error"
    assert classify_log([*STEPS, link, *TYPE_ERROR]).cause == "ib_link"
    launch = [*TYPE_ERROR[:-1], "RuntimeError: CUDA error: unspecified launch failure"]
    assert classify_log([link, *STEPS, *launch]).cause == "ib_link"


def test_a_job_that_is_merely_over_did_not_complete() -> None:
    assert classify_log([*STEPS, *TYPE_ERROR, "job 40418 done"]).cause == "type_error"
    assert classify_log([*TYPE_ERROR, *STEPS, "job 40418 done"]).cause == "unknown"
    killed = "slurmstepd: error: Detected 1 oom_kill event in StepId=7.batch."
    ended = "State: OUT_OF_MEMORY (exit code 0)"
    assert classify_log([*STEPS, killed, ended]).cause == "host_oom"


def test_a_sign_of_hardware_explains_the_exception_of_a_watch() -> None:
    sign = "HW Thermal Slowdown           : Active"
    watch = [*TYPE_ERROR[:-1], "StragglerAbort: rank 11 slower than 4x median"]
    assert classify_log([*STEPS, sign, *watch]).cause == "gpu_thermal"
    assert classify_log([*STEPS, *watch]).cause == "python_exception"
    assert classify_log([*STEPS, sign, *TYPE_ERROR]).cause == "type_error"


def test_the_surest_word_on_who_ended_the_job_counts() -> None:
    cancelled = "slurmstepd: error: *** JOB 77 ON gn2 CANCELLED AT 2025-03-12T10:31:05 ***"
    sorry = "admincomment: I cancelled 77 by mistake"
    assert classify_log([*STEPS, cancelled]).cause == "cancelled"
    assert classify_log([*STEPS, cancelled, sorry]).cause == "human_error"


@pytest.mark.parametrize(
    "count", ["double bit ECC errors: 0", "ECC DBE: 0", "| GPU | ECC DBE | ok |"]
)
def test_no_uncorrectable_errors_are_no_fault(count: str) -> None:
    assert classify_log([count, *TYPE_ERROR]).domain == "user"
    assert classify_log(["GPU 3: double bit ECC errors: 2", *TYPE_ERROR]).cause == "gpu_memory"


def test_a_maintenance_that_is_only_announced_ended_nothing() -> None:
    notice = "The cluster goes down for maintenance on Friday 08:00"
    cancelled = "slurmstepd: error: *** JOB 77 ON gn2 CANCELLED AT 2025-03-12T08:00:05 ***"
    assert classify_log([notice, *TYPE_ERROR]).cause == "type_error"
    assert classify_log([notice, *STEPS, cancelled]).cause == "maintenance"


@pytest.mark.parametrize(
    "line", ["circuit breaker open for service kv", "dcgmi diag: failed to run: not installed"]
)
def test_words_of_hardware_about_something_else_do_not_count(line: str) -> None:
    assert classify_log([line, *TYPE_ERROR]).cause == "type_error"


def test_lines_that_sound_like_hardware_outweigh_no_exception_and_no_progress_after_them() -> None:
    """Of 405 such lines, written to provoke, rules of one kind of line take some in earnest."""
    lines = (Path(__file__).parent / "benign_lines.txt").read_text("utf-8").splitlines()
    assert len(lines) > 400
    raised = [line for line in lines if classify_log([*STEPS, line, *TYPE_ERROR]).domain != "user"]
    assert len(raised) <= 40, raised
    went_on = [f"step {step} loss {3 - step / 50:.3f}" for step in range(20)]
    ended = [*went_on, "srun: error: c12: task 3: Exited with exit code 1"]
    assert {classify_log([line, *ended]).domain for line in lines} == {"unknown"}


@pytest.mark.parametrize(
    "rest", ["\r 45%|###| 9/20", "\n\nfoo", " Traceback (most recent call last)"]
)
def test_a_header_with_more_on_its_line_is_read(rest: str) -> None:
    header = f"w1> Traceback (most recent call last):{rest}"
    assert classify_log([*STEPS, header, *TYPE_ERROR]).domain == "user"
