"""The first cause in a job's log: composed logs of every cause, traps, and what must not matter."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.failures.log_classifier import LogVerdict, classify_log
from analytics.failures.log_classifier.device_memory import doubt_of_full
from analytics.failures.log_classifier.lines import cleaned
from analytics.failures.log_classifier.rules import ROLES, may_matter, rules
from analytics.failures.taxonomy import taxonomy

LOGS = sorted((Path(__file__).parent / "logs").glob("*.log"))
ACME = (
    "NVLink", "CUDA", "Node", "ECC", "Network", "Connection", "S3", "NCCL timeout", "NCCL remote",
    "dataloader killed", "Attribute", "OOM", "Runtime", "Assertion", "Value", "ZeroDivision",
    "model loading", "dataset loading", "FileNotFound", "OS", "Type", "Name", "Permission",
    "Import", "Key", "Syntax", "Argument", "CalledProcess", "Index",
)  # fmt: skip
DIED = "srun: error: c12: task 3: Exited with exit code 1"
NOISE = [f"step {n} loss {3 / (n + 1):.3f} errors 0" for n in range(8)]
KEY_ERROR = [
    "Traceback (most recent call last):",
    '  File "/w/train.py", line 3, in <module>',
    "    main()",
    "KeyError: 'labels'",
]


PLAIN_LOGS = [path for path in LOGS if not path.read_text(encoding="utf-8").startswith("{")]


def read(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")


def cause_of(path: Path) -> str:
    return path.stem.split("--")[0]


def raised(error: str, prefix: str = "") -> list[str]:
    return [prefix + line for line in (*KEY_ERROR[:-1], error)]


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_the_cause_of_a_composed_log_is_found(path: Path) -> None:
    verdict = classify_log(read(path))
    assert verdict.cause == cause_of(path)
    assert verdict.domain == taxonomy().domain_of(verdict.cause)
    assert 0 <= verdict.confidence <= 1
    if verdict.cause == "unknown":
        assert (verdict.method, verdict.confidence, verdict.evidence) == ("none", 0.0, ())
        return
    assert verdict.method == "log_rule"
    assert all(other.confidence <= verdict.confidence for other in verdict.alternatives)
    assert verdict.symptom in taxonomy().symptoms
    for line in verdict.evidence:
        assert line.text in read(path)[line.line - 1].replace("\x1b[31m", "").replace("\x1b[0m", "")


def test_every_reason_of_acme_is_reached_by_two_logs() -> None:
    labels = [taxonomy().label_of("acme", cause_of(path)) for path in LOGS]
    assert {label: labels.count(label) >= 2 for label in ACME} == dict.fromkeys(ACME, True)


@pytest.mark.parametrize("path", PLAIN_LOGS[::6], ids=lambda path: path.stem)
@pytest.mark.parametrize(
    "prefix",
    ["\x1b[31m", "2026-01-05T10:00:00.123Z ", "[2026-01-05 10:00:00,123] ", "1767607200.25 ",
     "node17: ", "Jan  5 10:00:00 gpu-7 train[412]: "],
)  # fmt: skip
def test_what_a_launcher_puts_before_each_line_does_not_matter(path: Path, prefix: str) -> None:
    lines = read(path)
    end = "\x1b[0m" if prefix.startswith("\x1b") else ""
    assert classify_log([prefix + line + end for line in lines]).cause == cause_of(path)


@given(st.randoms(use_true_random=False), st.sampled_from(LOGS))
@settings(deadline=None)
def test_lines_of_other_work_between_do_not_matter(order: random.Random, path: Path) -> None:
    lines = read(path)
    inserted = ["loading shard 17", "cache is warm", "hello from rank 5, 0 errors", ""] * 2
    order.shuffle(inserted)
    at = order.randrange(0, 3)
    assert classify_log(lines[:at] + inserted + lines[at:]).cause == cause_of(path)


@given(st.lists(st.text(max_size=120), max_size=60))
@settings(max_examples=200, deadline=None)
def test_any_text_gets_a_verdict(lines: list[str]) -> None:
    verdict = classify_log(lines)
    assert verdict.cause in taxonomy().causes
    assert all(1 <= line.line <= len(lines) for line in verdict.evidence)


@pytest.mark.parametrize("lines", [[], [""], NOISE, ["\0\0", "\r\r"]])
def test_a_log_without_any_failure_is_unknown(lines: list[str]) -> None:
    assert classify_log(lines) == LogVerdict("unknown", "unknown", 0.0, "none")


@pytest.mark.parametrize(
    ("line", "alternative"),
    [
        ("RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed.", "host_oom"),
        ("gpu-1:1:2 [0] NCCL WARN NET/IB : Got completion with error 12, opcode 1, len 0, vendor err 129", "ib_link"),
        ("OSError: [Errno 5] Input/output error: '/data/x'", "disk"),
    ],
)  # fmt: skip
def test_a_line_with_several_causes_names_them(line: str, alternative: str) -> None:
    verdict = classify_log([*NOISE, line])
    assert verdict.cause != "unknown"
    assert alternative in [other.cause for other in verdict.alternatives]
    assert all(other.reason for other in verdict.alternatives)


LOST = "[ 12.5] NVRM: Xid (PCI:0000:17:00): 79, pid=1, GPU has fallen off the bus."


@pytest.mark.parametrize(
    "end",
    [
        ["training finished successfully, exit 0"],
        ["Training completed at step 400", "saved the model", "exiting 0"],
        ["pod phase Succeeded"],
    ],
)
def test_what_comes_after_a_job_that_finished_well_is_no_failure(end: list[str]) -> None:
    assert classify_log([*NOISE, *end, "collected later:", LOST]).cause == "unknown"


@pytest.mark.parametrize(
    "end",
    [
        ["evaluation done", LOST, "logs uploaded successfully"],
        ["staging job complete", "done successfully", "step 1 loss 2.1", LOST],
        ["training finished", *["waiting for the others"] * 4, LOST, "pod deleted successfully"],
        ["training finished, exit code 1", LOST],
    ],
)
def test_a_part_that_finished_hides_no_failure_of_the_job(end: list[str]) -> None:
    assert classify_log([*NOISE, *end]).cause == "gpu_unavailable"


def test_what_a_line_denies_hides_neither_what_it_reports_nor_what_is_missing() -> None:
    wrong = "GPU 3: 7 wrong results, no ECC or Xid reported"
    assert classify_log([*NOISE, wrong]).cause == "silent_corruption"
    full = "OSError: cannot write shard 7 (No space left on device)"
    assert classify_log([*NOISE, full]).cause == "storage_exhausted"


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("chip 2 HBM parity error, halting", "gpu_memory"),
        ("ICI link down on port 2, slice is unhealthy", "nvlink"),
        ("rdmap16s27 efa adapter reset failed, unrecoverable error", "nic"),
        ("osfp transceiver in swp14: loss of signal", "network"),
        ("12V rail undervoltage, tray off", "power"),
        ("cdu pump 2 fault", "cooling"),
        ("hl-smi: device 4 status: unhealthy", "gpu_fault"),
        ("vast client: cluster is offline", "filesystem_mount"),
        ("sssd is dead", "system_service"),
        ("data set /data/x: tokenizer vocab is unknown", "runtime_error"),
    ],
)
def test_a_broken_thing_is_known_without_a_rule_of_its_own(line: str, cause: str) -> None:
    assert classify_log([*NOISE, line, DIED]).cause == cause


@pytest.mark.parametrize(
    "line",
    [
        "PSU1 needs to be replaced: not asserted",
        "GPU2 volatile ECC corrected 14, uncorrected 0",
        "efa adapter reset failed 0 times, all healthy",
        "WARNING: turning off GPU-aware MPI since it is not detected",
        "counters mlx5_0: SymbolErrors 0 LinkDowned 0",
        "host n7 unreachable (ping, ssh, slurmd)",
    ],
)
def test_a_thing_that_is_well_is_none(line: str) -> None:
    assert classify_log([*NOISE, line, DIED]).domain == "unknown"


def test_every_rule_is_a_regular_expression() -> None:
    texts = {rule.pattern for of_word in rules().by_word.values() for rule in of_word}
    assert len(texts) > 300
    for text in texts:
        re.compile(text)


def test_a_launch_failure_alone_decides_nothing() -> None:
    verdict = classify_log([*NOISE, "RuntimeError: CUDA error: unspecified launch failure"])
    assert verdict.cause == "unknown"
    assert {"illegal_memory_access", "gpu_fault"} <= {one.cause for one in verdict.alternatives}


@pytest.mark.parametrize("line", ["./run.sh: line 4: 12 Killed   python t.py",
                                  "container exited with code 137"])  # fmt: skip
def test_a_bare_kill_is_no_more_than_a_hint_of_exhausted_memory(line: str) -> None:
    verdict = classify_log([*NOISE, line])
    assert verdict.cause == "unknown"
    assert verdict.alternatives[0].cause == "host_oom"


def test_a_kill_that_the_kernel_explains_is_exhausted_memory() -> None:
    verdict = classify_log([*NOISE, "exited with code 137 (OOMKilled)"])
    assert (verdict.cause, verdict.domain) == ("host_oom", "user")


def test_confidence_rises_with_what_a_line_says() -> None:
    said = [
        "something raised an error, see RuntimeError: x",
        "RuntimeError: CUDA error: unknown error",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "RuntimeError: CUDA error: uncorrectable ECC error encountered",
    ]
    confidence = [classify_log([*NOISE, *raised(line)]).confidence for line in said]
    assert confidence == sorted(confidence)
    assert confidence[-1] > confidence[0]


class TestFullGpuMemory:
    ASKED = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a "

    def test_that_cannot_have_been_full_points_at_the_gpu(self) -> None:
        line = self.ASKED + "total capacity of 79.15 GiB of which 70.00 GiB is free."
        verdict = classify_log([*NOISE, *raised(line)])
        assert verdict.alternatives[0].cause == "gpu_fault"
        assert verdict.confidence <= 0.5
        assert "70 GiB were free" in verdict.alternatives[0].reason

    def test_held_by_no_process_points_at_the_gpu(self) -> None:
        line = self.ASKED + (
            "total capacity of 79.15 GiB of which 2.00 MiB is free. Including non-PyTorch "
            "memory, this process has 1.10 GiB memory in use."
        )
        assert doubt_of_full([line]) == "78 GiB of 79.2 GiB are held by no process it names"

    def test_beside_a_row_remap_points_at_the_memory(self) -> None:
        line = self.ASKED + "total capacity of 79.15 GiB of which 2.00 MiB is free."
        verdict = classify_log(["GPU 3: row remap pending: yes", *NOISE, *raised(line)])
        assert "gpu_memory" in [verdict.cause, *(one.cause for one in verdict.alternatives)]
        assert verdict.confidence <= 0.6

    def test_that_was_full_is_the_program(self) -> None:
        line = self.ASKED + (
            "total capacity of 79.15 GiB of which 2.00 MiB is free. Including non-PyTorch "
            "memory, this process has 79.10 GiB memory in use."
        )
        verdict = classify_log([*NOISE, *raised(line)])
        assert (verdict.cause, verdict.domain) == ("cuda_oom", "user")
        assert verdict.confidence > 0.9


class TestChains:
    CAUSE = ("", "The above exception was the direct cause of the following exception:", "")
    CONTEXT = ("", "During handling of the above exception, another exception occurred:", "")

    @pytest.mark.parametrize("link", [CAUSE, CONTEXT])
    def test_a_wrapper_gives_way_to_what_it_wraps(self, link: tuple[str, ...]) -> None:
        first = raised("FileNotFoundError: [Errno 2] No such file or directory: '/a'")
        assert classify_log([*first, *link, *raised("RuntimeError: set-up failed")]).cause == (
            "file_not_found"
        )

    def test_a_failed_probe_gives_way_to_what_was_tried_instead(self) -> None:
        second = raised("PermissionError: [Errno 13] Permission denied: '/cache'")
        verdict = classify_log([*KEY_ERROR, *self.CONTEXT, *second])
        assert verdict.cause == "permission_denied"

    def test_a_failed_probe_that_is_raised_from_counts(self) -> None:
        verdict = classify_log([*KEY_ERROR, *self.CAUSE, *raised("ValueError: no labels")])
        assert verdict.cause == "key_error"

    def test_an_exception_carried_over_from_a_worker_counts(self) -> None:
        lines = raised("RuntimeError: Caught RuntimeError in replica 1 on device 1.")
        inner = ["Original Traceback (most recent call last):", '  File "m.py", line 1, in f',
                 "    f()", "RuntimeError: CUDA error: uncorrectable ECC error encountered"]  # fmt: skip
        verdict = classify_log([*lines, *inner])
        assert verdict.cause == "gpu_memory"


@pytest.mark.parametrize("link", [2, 40])
def test_a_cause_is_found_behind_a_watchdog_wherever_it_stands(link: int) -> None:
    watchdog = [
        f"[rank{rank}]:[E ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective "
        f"operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, Timeout(ms)=600000) ran for "
        f"60003{rank} milliseconds before timing out."
        for rank in range(4)
    ]
    ecc = "NVRM: Xid (PCI:0000:3b:00): 48, pid=1, name=python, DBE (double bit error) ECC Error"
    for log in ([*NOISE, ecc, *watchdog], [*NOISE, *watchdog, *NOISE[:link], ecc]):
        verdict = classify_log(log)
        assert (verdict.cause, verdict.symptom) in [
            ("gpu_memory", "nccl_timeout"),
            ("gpu_memory", "gpu_memory_errors"),
        ]
        assert ecc in verdict.evidence[0].text


def test_an_exception_that_python_ignored_ended_nothing() -> None:
    ignored = ["Exception ignored in: <function Pool.__del__ at 0x7f>", *KEY_ERROR]
    assert classify_log([*NOISE, *ignored]).cause == "unknown"
    assert classify_log([*NOISE, *raised("TypeError: x"), *ignored]).cause == "type_error"


def test_an_exception_after_which_the_program_tries_again_is_the_cause_only_where_it_died() -> None:
    failed = raised("ConnectionError: no answer")
    tried = [*NOISE, *failed, "retrying in 5 s (attempt 1/3)", *NOISE[:3]]
    assert classify_log(tried).cause == "unknown"
    died = [*tried, *failed, "srun: error: n1: task 0: Exited with exit code 1"]
    assert classify_log(died).cause == "connection_error"


class TestSeveralFiles:
    PROGRESS = tuple(f"step {n} loss 2.0" for n in range(60))

    def test_progress_after_an_exception_in_one_file_passes_over_it(self) -> None:
        assert classify_log([*KEY_ERROR, *self.PROGRESS]).cause == "unknown"

    @pytest.mark.parametrize("end", ["", "training finished"])
    def test_progress_of_another_file_does_not(self, end: str) -> None:
        lines = [*KEY_ERROR, *self.PROGRESS, end]
        verdict = classify_log(lines, starts=[0, len(KEY_ERROR)])
        assert (verdict.cause, verdict.evidence[0].line) == ("key_error", len(KEY_ERROR))

    def test_a_file_that_ends_well_says_nothing_of_the_failure(self) -> None:
        first = [*KEY_ERROR, "done"]
        lines = [*first, *self.PROGRESS, *raised("ValueError: x")]
        assert classify_log(lines, starts=[0, len(first)]).cause == "value_error"


HEALTHY = """test_error: 0.1312 train_error=0.02
Corrected ECC errors: 12
GPU 0: ECC errors (volatile uncorrected): 0
Xid errors: none
NCCL_TIMEOUT=1800 TORCH_NCCL_ASYNC_ERROR_HANDLING=1
no failures detected on 64 nodes
/x/y.py:12: RuntimeWarning: divide by zero encountered in log
[WARNING] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768
DataLoader worker restarted successfully after failure
Connection to redis lost, reconnecting... reconnected after 1 retry
wandb: ERROR Error while calling W&B API: timeout, retrying
INFO error handler registered for SIGTERM
on_cuda_oom: raise
Gradient norm is inf at step 3, skipping update
GPU temperature 62 C, power 480 W, fan 40 %
kernel memory check: 0 machine check events
Tip: if you see CUDA out of memory, reduce the batch size
Unexpected key(s) ignored: ['rotary_emb.inv_freq']
no checkpoint found, training from scratch
[W socket.cpp:663] [c10d] The client socket has failed to connect to [n1]:29500 (errno: 111 - Connection refused).
NCCL WARN Missing "iommu=pt" from kernel command line which can lead to system instability or hang!
"""


@pytest.mark.parametrize("line", HEALTHY.splitlines())
def test_error_words_in_a_healthy_log_are_no_failure(line: str) -> None:
    for log in ([*NOISE[:2], line, *NOISE], [*NOISE, line]):
        assert classify_log(log).cause == "unknown"


def test_a_progress_bar_that_shares_the_line_of_an_exception_hides_nothing() -> None:
    lines = [*NOISE, " 10%|#  | 1/9\r 20%|##  | 2/9\rKeyError: 'labels'"]
    assert classify_log(lines).cause == "key_error"


def test_records_of_a_json_log_are_unwrapped() -> None:
    record = '{"level":"error","msg":"crashed","exc_info":"Traceback (most recent call last):\\n'
    record += '  File \\"t.py\\", line 1, in f\\nZeroDivisionError: division by zero"}'
    assert classify_log([*NOISE, record]).cause == "zero_division_error"


@pytest.mark.parametrize(
    ("raw", "text", "rank", "level"),
    [
        ("[rank3]: KeyError: 1", "KeyError: 1", "rank3", None),
        ("12: KeyError: 1", "KeyError: 1", "12", None),
        ("3:   File x", "  File x", "3", None),
        ("E0105 10:00:00.123456 99 a.cc:12] gone", "gone", None, "E"),
        ("2026-01-05 10:00:00 INFO: fine", "fine", None, "I"),
        ("node17:1234:1250 [3] NCCL WARN x", "NCCL WARN x", None, None),
        ("S3Error: no", "S3Error: no", None, None),
    ],
)
def test_prefixes_are_told_from_the_message(
    raw: str, text: str, rank: str | None, level: str | None
) -> None:
    (line,) = cleaned(1, raw)
    assert (line.text, line.rank, line.level) == (text, rank, level)


def test_every_rule_names_a_cause_and_a_role_that_exist() -> None:
    every = {id(rule): rule for found in rules().by_word.values() for rule in found}.values()
    assert len(every) > 60
    for rule in every:
        assert rule.meaning.cause in taxonomy().causes
        assert rule.meaning.role in ROLES
        assert 0 < rule.meaning.confidence < 1
        assert all(cause in taxonomy().causes for cause, _, _ in rule.meaning.alternatives)
    for _, cause in rules().python.roles.values():
        assert cause in taxonomy().causes


def test_words_of_rules_let_their_lines_through() -> None:
    for word in rules().by_word:
        assert may_matter(f"x {word} y"), word


@pytest.mark.benchmark
def test_a_thousand_logs_of_two_thousand_lines_take_seconds() -> None:
    draw = random.Random(0)
    logs = []
    for number in range(1_000):
        core = read(LOGS[number % len(LOGS)])
        steps = [f"[rank0]: step {n} | loss {draw.random():.4f} | 41.2k tokens/s"
                 for n in range(2_000 - len(core))]  # fmt: skip
        logs.append([*core[:10], *steps, *core[10:]])
    begin = time.process_time()
    for log in logs:
        classify_log(log)
    assert time.process_time() - begin < 8


def test_many_ranks_that_give_up_alike_are_no_progress_after_the_cause() -> None:
    lost = (
        "n7 kernel: NVRM: Xid (PCI:0000:9d:00): 79, pid=7, name=python, GPU has fallen off the bus."
    )
    given_up = [
        f"[rank{rank}]:[E ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=88231, OpType=ALLREDUCE, Timeout(ms)=600000)"
        for rank in range(512)
    ]
    verdict = classify_log(
        ["step 10 loss 2.1", lost, *given_up, "srun: error: n7: task 2: Aborted"]
    )
    assert (verdict.domain, verdict.cause) == ("hardware", "gpu_unavailable")
    assert verdict.evidence[0].line == 2


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        (["habanalabs 0000:4d:00.0: hl2: device heartbeat failed!",
          "[Rank 5] HCCL timeout in reduceScatter, remote=2"], "gpu_unavailable"),
        (["habanalabs_en 0000:33:00.0: hl3: NIC port 22: PHY failed, port disabled",
          "[rank3] RuntimeError: Graph run failed. synStatus=26 [Generic failure]."], "ethernet_link"),
        (["UFM event 1310: High BER on port, link isolated: recommend to replace the cable",
          "NCCL error: remote process exited or there was a network error"], "ib_link"),
        (["event: Node gke-1  Upgrade  draining node for version upgrade",
          "ncclRemoteError: A call failed possibly due to a network error"], "maintenance"),
        (["ERROR  : Failed to create user namespace: user namespace disabled"], "container_runtime"),
        (["slurm_script: line 19: MASTER_ADR: unbound variable"], "name_error"),
    ],
)  # fmt: skip
def test_words_of_accelerators_fabrics_and_hosts(lines: list[str], cause: str) -> None:
    assert classify_log(["step 10 loss 2.1", *lines]).cause == cause


@pytest.mark.parametrize(
    "line",
    [
        "effective BER 1e-15 (limit 1e-12), LinkErrorRecovery +1",
        "Maintenance maint_nov starts in 5 days",
        "recovery_strategy.py:291] Cluster preempted or failed. Cluster status: STOPPED",
    ],
)
def test_what_is_measured_announced_or_undecided_is_no_cause(line: str) -> None:
    lost = "NCCL error: remote process exited or there was a network error"
    assert classify_log([line, "step 10 loss 2.1", lost]).domain == "unknown"
