"""Forms in which programs, launchers and drivers print what they print: composed lines."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from analytics.failures.log_classifier import classify_log
from analytics.failures.log_classifier.lines import cleaned

STEPS = [f"step {n} loss {2 + 1 / (n + 1):.4f}" for n in range(2_000)]
DOUBLE_BIT = "NVRM: Xid (PCI:0000:3b:00): 48, pid=12, name=python, DBE (double bit error) on FB"
FULL = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
WATCHDOG = (
    "[rank4]:[E1119 13:21:12.5 ProcessGroupNCCL.cpp:616] [Rank 4] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=9) ran for 1800000 milliseconds before timing out."
)


def raised(*errors: str, prefix: str = "") -> list[str]:
    top = ["Traceback (most recent call last):", '  File "/w/run.py", line 7, in <module>']
    return [prefix + line for error in errors for line in (*top, "    main()", error, "")]


@pytest.mark.parametrize(
    ("cause", "line"),
    [
        ("host_oom", "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory."),
        ("host_oom", "Warning Evicted 4m pod/a The node was low on resource: memory."),
        ("host_oom", "srun: error: gpu-02: tasks 0-7: Out Of Memory"),
        ("host_oom", "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit."),
        ("storage_exhausted", "Warning Evicted kubelet Pod ephemeral local storage usage exceeds the limit 20Gi."),
        ("storage_exhausted", "slurmstepd: error: pyxis: [ERROR] Write error: No space left on device"),
        ("container_runtime", "slurmstepd: error: pyxis: enroot-mount: failed to mount: /d at /r/d: No such file"),
        ("scheduler", "srun: error: Task launch for 36.0 failed on node n1: Job credential expired"),
        ("node_lost", "srun: error: Task launch for StepId=1.0 failed on node n5: Communication connection failure"),
        ("requeued", "WARNING Spot instance interruption notice received"),
        ("cancelled", "Detected KeyboardInterrupt, attempting graceful shutdown ..."),
        ("time_limit", "job 123 exceeded hard wallclock time limit - initiate terminate method"),
        ("ethernet_link", "[ 12.5] mlx5_core 0000:9a:00.0 ens1f0np0: Link down"),
        ("ib_link", "[ 12.5] mlx5_core 0000:9a:00.0 mlx5_3: Port: 1 Link DOWN"),
        ("nccl_remote_error", "[n3:12 :0] ib_mlx5_log.c:177 UCX ERROR Transport retry count exceeded on mlx5_0:1/IB"),
        ("node_configuration", "n1:1:2 [0] NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory"),
        ("nccl_error", "n1:1:2 [0] NCCL WARN Call to ibv_create_cq failed"),
        ("nccl_error", "[E1 ProcessGroupNCCL.cpp:552] [Rank 3] WorkNCCL raised: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)"),
        ("nccl_timeout", "[E1 ProcessGroupNCCL.cpp:1316] [Rank 0] Heartbeat monitor timed out!"),
        ("nccl_timeout", "RuntimeError: [Rank 0]: Ranks 5 failed to pass monitoredBarrier in 1800000 ms"),
        ("gpu_fault", "[ 13.9] amdgpu 0000:1c:00.0: {1}uncorrectable hardware error detected!"),
        ("gpu_memory", "NVRM: Xid (PCI:0000:3b:00): 94, pid=12, name=a, Contained: SM (0x1). RST: No, D-RST: No"),
        ("power", "2025-01-01 00:00:00 bmc: PSU1 failure: input power lost"),
        ("system_service", "RuntimeError: CUDA error: MPS client failed to connect to the MPS control daemon"),
        ("cuda_oom", "buffer_type_alloc: allocating 4096.00 MiB on device 0: cudaMalloc failed: out of memory"),
        ("cuda_oom", "ERROR: CUDA out of memory. Tried to allocate 2 GiB. See documentation for Memory Management"),
        ("model_loading", "Cannot access gated repo for url https://huggingface.co/a/b/resolve/main/config.json."),
        ("model_loading", "requests.exceptions.HTTPError: 404 Client Error: Not Found for url: https://huggingface.co/a/b/resolve/main/config.json"),
        ("dataset_loading", "requests.exceptions.HTTPError: 404 Client Error: Not Found for url: https://huggingface.co/datasets/a/b"),
        ("connection_error", "huggingface_hub.errors.HfHubHTTPError: 429 Client Error: Too Many Requests for url: u"),
        ("connection_error", "wandb.errors.CommError: Run initialization has timed out after 90.0 sec."),
        ("object_storage", "Exception: ((' gsutil cat gs://b/train/20.tar',), {'shell': True}): exit 1 (read)"),
        ("os_error", "RuntimeError: received 0 items of ancdata"),
        ("argument_error", "train.py: error: unrecognized arguments: --ecc-check --xid 79"),
        ("non_finite_loss", "a.b.NanLossDuringTrainingError: NaN loss during training."),
    ],
)  # fmt: skip
def test_a_line_names_its_cause(cause: str, line: str) -> None:
    assert classify_log([*STEPS[:5], line]).cause == cause


@pytest.mark.parametrize(
    "lines",
    [
        ["SRAM Uncorrectable Parity         : 0", "DRAM Uncorrectable  : 0", "Pending : No"],
        ["ECC Errors: Volatile SRAM Uncorrectable Parity : 0"],
        ["slurmstepd: error: couldn't chdir to `/h/u': No such file or directory: going to /tmp instead"],
        ["  > will ignore missing keys in checkpoint"],
        ["E0101 cuda_driver.cc:271] failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected"],
        ["2022-01-01 10:00:00 | WARNING | x.trainer | OOM: CUDA out of memory. Tried to allocate 1.00 GiB"],
        ["done", "Training complete.", "Exception ignored in: <_io.TextIOWrapper name='<stdout>'>",
         "BrokenPipeError: [Errno 32] Broken pipe"],
        ["cooldown/cooling failure tolerance = 3"],
    ],
)  # fmt: skip
def test_what_only_sounds_like_a_failure_is_none(lines: list[str]) -> None:
    assert classify_log([*STEPS[:2], *lines]).cause == "unknown"


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        ("ValueError: unknown metric 'uncorrectable ecc errors'", "value_error"),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/d/cuda out of memory.txt'",
         "file_not_found"),
        ("AssertionError: bitwise mismatch of the two paths", "assertion_error"),
    ],
)  # fmt: skip
def test_words_that_an_exception_quotes_are_no_hardware(error: str, cause: str) -> None:
    verdict = classify_log(raised(error))
    assert (verdict.cause, verdict.domain) == (cause, "user")


def test_a_counter_of_past_errors_does_not_explain_an_exception() -> None:
    table = ["SRAM Uncorrectable Parity         : 2", "Pending                 : No"]
    assert classify_log([*table, *raised("KeyError: 'x'")]).cause == "key_error"


def test_a_setting_that_is_missing_is_an_error_of_arguments() -> None:
    error = "omegaconf.errors.MissingMandatoryValue: Missing mandatory value: model.path"
    assert classify_log(raised(error)).cause == "argument_error"


def test_words_of_a_network_yield_to_an_exception_that_names_itself() -> None:
    said = "network failure prediction head enabled"
    assert classify_log([said, *raised("ValueError: two heads expected")]).cause == "value_error"


def test_a_wrapper_of_a_trainer_yields_to_what_its_worker_raised() -> None:
    error = "ray.train.base_trainer.TrainingFailedError: The run failed."
    assert classify_log([*raised(error), *raised(FULL)]).cause == "cuda_oom"


def test_what_a_thread_reads_from_dead_workers_is_no_cause() -> None:
    thread = "Exception in thread Thread-3 (_pin_memory_loop):"
    reset = raised("ConnectionRefusedError: [Errno 111] Connection refused")
    assert classify_log([thread, *reset, *raised("ValueError: bad plan")]).cause == "value_error"


def test_an_exception_of_a_group_is_the_cause_and_not_the_group() -> None:
    group = ["  + Exception Group Traceback (most recent call last):",
             '  |   File "/w/x.py", line 3, in <module>',
             "  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)",
             "  +-+---------------- 1 ----------------",
             "    | Traceback (most recent call last):",
             '    |   File "/w/x.py", line 9, in f',
             "    | KeyError: 'a'"]  # fmt: skip
    assert classify_log(group).cause == "key_error"


def test_the_first_of_two_defects_is_the_cause() -> None:
    aer = "[ 12.5] pcieport 0000:15:01.0: AER: Uncorrectable (Fatal) error message received"
    lost = "[ 12.6] NVRM: Xid (PCI:0000:17:00): 79, pid=1, GPU has fallen off the bus."
    assert classify_log([aer, lost]).cause == "pcie"


@pytest.mark.parametrize(
    ("end", "cause"),
    [
        ([], "gpu_memory"),  # nothing else is told of why the job failed
        (["srun: error: n1: task 3: Exited with exit code 1"], "unknown"),
        (["Killed"], "unknown"),
        (["Segmentation fault (core dumped)"], "program_crash"),
        (raised("KeyError: 'a'"), "key_error"),
        ([WATCHDOG], "gpu_memory"),
        (raised(FULL), "gpu_memory"),
    ],
)
def test_a_memory_error_long_ago_explains_only_what_a_gpu_can_do(
    end: list[str], cause: str
) -> None:
    verdict = classify_log(["start", DOUBLE_BIT, *STEPS, *end])
    assert verdict.cause == cause


@pytest.mark.parametrize(
    "prefix",
    [
        "(Worker_TP3 pid=99) ERROR 09-25 05:06:07 [multiproc_executor.py:1055] ",
        "(EngineCore_DP0 pid=9) ERROR 05:06:07 [core.py:843] ",
        "(Worker_TP3) ERROR 05:06:07 [multiproc_executor.py:1055] ",
        "ERROR 09-25 05:06:07 multiproc_executor.py:120] ",
        "[2025-08-13 02:01:56 DP0 TP0] ",
        "[2024-02-27T21:35:34.295539Z] fa88a9df || [rank=3] ",
        "[1,mpirank:3,algo-1]<stderr>:",
        "[1,12]<stderr>:",
        "2025-03-04T05:06:07.123456789Z stderr F ",
        "2025-03-04 05:06:07,123 - root - ERROR - ",
        "2025/03/04 05:06:07 - mmengine - ERROR - ",
        "2025-03-04 05:06:07.123 | ERROR    | __main__:main:33 - ",
        "[05:06:07] ERROR    ",
        "12: 2025-03-04 05:06:07 ",
        "gpu017: 2025-03-04 05:06:07 ",
        "[abc-n0-0-3] ",
        "trainer/0 ",
        "i.pretrain/0 [rank4]: ",
        "trainer-1  | ",
        "0: [NeMo E 2023-01-18 07:39:42 exp_manager:423] ",
    ],
)
def test_a_chain_is_read_behind_any_prefix(prefix: str) -> None:
    first, second = "FileNotFoundError: no index", "RuntimeError: set-up failed"
    link = "The above exception was the direct cause of the following exception:"
    chain = [*raised(first), link, "", *raised(second)]
    assert classify_log([prefix + line for line in chain]).cause == "file_not_found"


class TestRecords:
    def test_of_which_the_message_is_empty_are_read(self) -> None:
        lines = [json.dumps({"message": text}) for text in ("", " ", *raised("KeyError: 'a'"))]
        assert classify_log(lines).cause == "key_error"

    def test_longer_than_a_line_of_text_are_read_whole(self) -> None:
        trace = "\n".join(raised("KeyError: 'a'", prefix=""))
        frames = "\n".join('  File "/w/very/long/path.py", line 9, in f' for _ in range(300))
        record = {"severity": "ERROR", "message": "failed", "exc_info": frames + "\n" + trace}
        assert classify_log([json.dumps(record)]).cause == "key_error"

    def test_in_the_record_of_a_container_are_read(self) -> None:
        inner = json.dumps({"level": "error", "msg": "ValueError: bad plan"})
        assert classify_log([json.dumps({"log": inner + "\n"})]).cause == "value_error"

    def test_that_a_launcher_writes_of_an_error_are_read(self) -> None:
        message = {"message": "ValueError: no samples", "extraInfo": {"timestamp": "1"}}
        assert classify_log([json.dumps({"message": message})]).cause == "value_error"


def test_an_exception_at_the_end_of_a_long_bar_of_progress_is_read() -> None:
    bar = "\r".join(f"{n}/9999 [00:01<00:02, 1.0it/s]" for n in range(3_000))
    assert classify_log([bar + FULL]).cause == "cuda_oom"
    assert len(cleaned(1, "x" * 5_000_000)) == 2


@pytest.mark.parametrize("seed", ["1", "2"])
def test_a_verdict_does_not_depend_on_the_order_of_sets(seed: str) -> None:
    said = "slurmstepd: error: pyxis: enroot-mount: failed to mount: /d: No space left on device"
    program = (
        "from analytics.failures.log_classifier import classify_log;"
        f"print(classify_log([{said!r}]).cause)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "storage_exhausted"


def test_a_record_that_is_nested_without_end_is_a_line_like_any_other() -> None:
    nested = '{"a":' + "[" * 3_000 + "]" * 3_000 + "}"
    assert [line.text for line in cleaned(1, nested)] == [nested]


LOST = "kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus."


def test_gpus_that_a_script_hides_are_not_lost() -> None:
    missing = raised("RuntimeError: No CUDA GPUs are available")
    assert classify_log(["export CUDA_VISIBLE_DEVICES=-1", *missing]).domain == "user"
    mentioned = "caught (RuntimeError: not fatal), going on"
    assert classify_log([mentioned, *missing]).cause == classify_log(missing).cause
    assert classify_log(missing).domain != "user"


def test_what_is_well_again_and_went_on_decides_nothing() -> None:
    down, up = "kernel: mlx5_core 0000:9b:00.0 ens1: Link down", "kernel: mlx5_core ens1: Link up"
    after = ["step 1 loss 2.1", *raised("KeyError: 'labels'")]
    assert classify_log([down, up, *after]).cause == "key_error"
    assert classify_log([down, *after]).domain == "hardware"
    assert classify_log([*after, down, up]).cause == "key_error"


def test_a_fault_hours_before_the_end_explains_no_timeout() -> None:
    later = ["2026-01-05 19:00:00 step 9 loss 2.1", f"2026-01-05 19:30:00 {WATCHDOG}"]
    assert classify_log([f"2026-01-05 10:00:00 {LOST}", *later]).cause == "nccl_timeout"
    assert classify_log([f"2026-01-05 18:50:00 {LOST}", *later]).cause == "gpu_unavailable"


def test_what_stands_before_a_start_is_an_earlier_end() -> None:
    ended = raised("ValueError: too many values to unpack")
    begun = ["starting training attempt", "step 1 loss 2.1"]
    assert classify_log([LOST, *begun, *ended]).cause == "value_error"
    assert classify_log([LOST, *begun, WATCHDOG]).cause == "gpu_unavailable"


@pytest.mark.parametrize(
    "line",
    [f"# {LOST}", f"| {LOST}", f"loading alert rule '{LOST}'", f"pattern: {LOST}",
     f"2024-03-01 {LOST} replaced", f"previous job on this node: {LOST}", f'{{"content": "{LOST}"}}'],
)  # fmt: skip
def test_a_fault_that_a_line_only_speaks_of_is_none(line: str) -> None:
    assert classify_log([line, *raised("KeyError: 'labels'")]).cause == "key_error"
    assert classify_log([LOST, *raised("RuntimeError: CUDA error")]).domain == "hardware"
