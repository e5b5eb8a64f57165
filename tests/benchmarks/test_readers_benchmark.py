"""100,000 records for each reader: rows per processor second of the whole command, and memory."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from data.ingest.formats.event_files import masked_crc
from data.ingest.readers import known_readers
from data.store import Store
from data.synthetic.trace_schedule import TraceCosts, TraceShape, trace_columns
from tests.benchmarks.accounting import write_sacct

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.benchmark, pytest.mark.slow]

N_RECORDS = 100_000
MAX_MEMORY_GB = 1.0
"""As for a bomb: a reader does not hold its file."""
COMMAND = """
import os, sys
from app.cli import main
code = main(sys.argv[1:])
print(sum(os.times()[:4]), open("/proc/self/status").read(), file=sys.stderr)
sys.exit(code)
"""
BEGIN = datetime(2024, 3, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Sample:
    """How a file of one source is written, record by record."""

    name: str
    record: Callable[[int], str]
    """The n-th record, with its end."""
    head: str = ""
    tail: str = ""
    options: tuple[str, ...] = ()

    def write(self, folder: Path, n_records: int) -> Path:
        """A file of so many records."""
        path = folder / self.name
        with path.open("w", encoding="utf-8") as stream:
            stream.write(self.head)
            stream.writelines(map(self.record, range(n_records)))
            stream.write(self.tail)
        return path


def _at(n: int, form: str = "%Y-%m-%dT%H:%M:%S") -> str:
    """The time of the n-th record."""
    return (BEGIN + timedelta(seconds=7 * n)).strftime(form)


def _unix(n: int) -> int:
    return int(BEGIN.timestamp()) + 7 * n


def _listed(record: Callable[[int], dict[str, Any]]) -> Callable[[int], str]:
    """Records of a list in a JSON document, a line each."""
    return lambda n: ("" if n == 0 else ",\n") + json.dumps(record(n))


def _lines(record: Callable[[int], dict[str, Any]]) -> Callable[[int], str]:
    """Records as JSON lines."""
    return lambda n: json.dumps(record(n)) + "\n"


def _sacct_json(n: int) -> dict[str, Any]:
    return {
        "job_id": n, "account": "a", "allocation_nodes": 1, "cluster": "c", "user": "ada",
        "exit_code": {"status": "SUCCESS", "return_code": 0, "signal": {"id": 0, "name": ""}},
        "name": "train", "nodes": f"n{n % 500}", "partition": "p", "qos": "q",
        "state": {"current": "COMPLETED", "reason": "None"}, "steps": [],
        "time": {"submission": _unix(n), "eligible": _unix(n), "start": _unix(n),
                 "end": _unix(n + 500), "elapsed": 3500, "limit": 60},
        "tres": {"allocated": [{"type": "gres", "name": "gpu", "id": 1001, "count": 8}]},
    }  # fmt: skip


_HEAD = "NVRM: Xid (PCI:0000:3b:00): 79, pid="
_SEL = (
    "SEL Record ID          : {0:04x}\n Record Type           : 02\n Timestamp             : {1}\n \
Generator ID          : 0020\n Sensor Type           : Memory\n Sensor Number         : 02\n \
Event Type            : Sensor-specific Discrete\n Event Direction       : Assertion Event\n \
Description           : Uncorrectable ECC\n\n"
)
SAMPLES = {
    "sacct": None,
    "straggler-trace": None,
    "sacct-json": Sample("sacct.json", _listed(_sacct_json), '{"jobs": [\n', "]}\n"),
    "jobcomp": Sample("jobcomp.json", _lines(lambda n: {
        "jobid": n, "@start": _at(n) + "Z", "@end": _at(n + 500) + "Z", "@submit": _at(n) + "Z",
        "elapsed": 3500, "nodes": f"n{n % 500}", "total_nodes": 1, "state": "FAILED",
        "exit_code": "1:0"})),
    "pbs": Sample("pbs.txt", lambda n: (
        f"{_at(n, '%m/%d/%Y %H:%M:%S')};E;{n}.server;user=ada queue=gpu ctime={_unix(n)} "
        f"start={_unix(n)} end={_unix(n + 500)} exec_host=n{n % 500}/0*4 Exit_status=1\n")),
    "sge": Sample("sge.txt", lambda n: (
        f"gpu.q:n{n % 500}:g:ada:train:{n}:sge:0:{_unix(n)}:{_unix(n)}:{_unix(n + 500)}:0:0:"
        "3600.5:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:proj:dept:NONE:4:0:1.0:0:0:-l gpu=1:0:NONE:1:0:0"
        "\n")),
    "lsf": Sample("lsf.txt", lambda n: (
        f'"JOB_FINISH" "10.1" {_unix(n + 500)} {n} 1000 33 8 {_unix(n)} 0 0 {_unix(n)} "ada" "gpu" '
        f'"" "" "" "h0" "/d" "" "o" "e" "f" 1 "n1" 1 "n{n % 500}" 32 60.0 "train" "run" '
        + "0 " * 19 + '"" "proj" 256 8 "" "" 0 0 0 "" "" "" "" 0 "" 0 "" -1\n')),
    "sacctmgr-events": Sample("events.txt", lambda n: (
        f"c|n{n % 500}|{_at(n)}|{_at(n + 500)}|DOWN|broken fan {n}|root\n"),
        "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\n"),
    "kernel-log": Sample("kernel.log", lambda n: (
        f"{_at(n)}+00:00 n{n % 500} kernel: " + (f"{_HEAD}{n}, lost\n" if n % 10 == 0
                                                 else f"eth0: link {n} is up\n"))),
    "gcm-health": Sample("checks.json", _lines(lambda n: {
        "node": f"n{n % 500}", "health_check": "ib", "result": n % 3, "end_time": _unix(n),
        "_msg": "port down"})),
    "ras-log": Sample("ras.log", lambda n: (
        f"- {_unix(n)} {_at(n, '%Y.%m.%d')} R{n % 500} {_at(n, '%Y-%m-%d-%H.%M.%S.581048')} "
        f"R{n % 500} RAS KERNEL {'FATAL' if n % 10 == 0 else 'INFO'} data TLB error {n}\n")),
    "ipmi-sel": Sample("sel.txt", lambda n: _SEL.format(n, _at(n, "%m/%d/%Y %H:%M:%S")),
                       options=("--node", "n1")),
    "redfish": Sample("sel.json", _listed(lambda n: {
        "@odata.type": "#LogEntry.v1_4_0.LogEntry", "Id": str(n), "Created": _at(n) + "Z",
        "EntryType": "SEL", "Severity": "Critical", "MessageId": "MEM0001",
        "Message": f"Multi-bit memory errors at DIMM A{n}."}),
        '{"Members": [\n', "]}\n", ("--node", "n1")),
    "nvsentinel": Sample("events.json", _listed(lambda n: {
        "version": 1, "agent": "syslog-health-monitor", "componentClass": "GPU",
        "checkName": "SysLogsXIDError", "isFatal": True, "isHealthy": False, "message": "XID 79",
        "errorCode": ["79"], "nodeName": f"gpu{n % 500}", "generatedTimestamp": _at(n) + "Z",
        "entitiesImpacted": [{"entityType": "GPU", "entityValue": "3"}]}),
        '{"events": [\n', "]}\n"),
    "dcgm": Sample("metrics.prom", lambda n: (
        f'DCGM_FI_DEV_GPU_TEMP{{gpu="{n % 8}",Hostname="n{n // 8 % 500}"}} {40 + n % 9} '
        f"{_unix(n)}000\n")),
    "prometheus-json": Sample("answer.json", _listed(lambda n: {
        "metric": {"__name__": "DCGM_FI_DEV_GPU_TEMP", "gpu": f"{n % 8}", "Hostname": f"n{n // 8}"},
        "values": [[_unix(n), f"{40 + n % 9}"]]}),
        '{"status":"success","data":{"resultType":"matrix","result":[\n', "]}}\n"),
    "job-table": Sample("jobs.csv", lambda n: (
        f"{n},COMPLETED,{_at(n)}Z,{_at(n)}Z,{_at(n + 500)}Z,1,8,n{n % 500}\n"),
        "job_id,state,submit_at,start_at,end_at,n_nodes,n_gpus,node_list\n"),
    "philly": Sample("cluster_job_log", _listed(lambda n: {
        "status": "Pass", "vc": "v", "jobid": f"application_{n}", "user": "u",
        "submitted_time": _at(n, "%Y-%m-%d %H:%M:%S"), "attempts": [
            {"start_time": _at(n, "%Y-%m-%d %H:%M:%S"), "end_time": _at(n, "%Y-%m-%d %H:%M:%S"),
             "detail": [{"ip": f"m{n % 500}", "gpus": ["gpu0", "gpu1"]}]}]}), "[\n", "]\n"),
    "k8s-pods": Sample("pods.json", _listed(lambda n: {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": f"p{n}", "namespace": "ml", "uid": str(n), "resourceVersion": "1",
                     "creationTimestamp": _at(n) + "Z", "labels": {"job-name": f"j{n // 8}"}},
        "spec": {"nodeName": f"n{n % 500}", "containers": [
            {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "8"}}}]},
        "status": {"phase": "Succeeded", "containerStatuses": [{"name": "main", "state": {
            "terminated": {"exitCode": 0, "reason": "Completed", "startedAt": _at(n) + "Z",
                           "finishedAt": _at(n + 500) + "Z"}}}]}}),
        '{"apiVersion": "v1", "kind": "PodList", "items": [\n', "]}\n"),
    "k8s-workloads": Sample("workloads.json", _listed(lambda n: {
        "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload",
        "metadata": {"name": f"job-j{n}", "namespace": "ml", "uid": str(n), "resourceVersion": "1",
                     "creationTimestamp": _at(n) + "Z",
                     "ownerReferences": [{"kind": "Job", "name": f"j{n}", "controller": True}]},
        "spec": {"queueName": "research"},
        "status": {"admission": {"podSetAssignments": [
            {"name": "main", "resourceUsage": {"nvidia.com/gpu": "8"}}]},
            "conditions": [
                {"type": "Admitted", "status": "True", "lastTransitionTime": _at(n + 10) + "Z"},
                {"type": "Finished", "status": "True", "reason": "Succeeded",
                 "lastTransitionTime": _at(n + 500) + "Z"}]}}),
        '{"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "WorkloadList", "items": [\n', "]}\n"),
    "gpud": Sample("gpud.json", _listed(lambda n: {
        "component": "accelerator-nvidia-error-xid", "time": _at(n) + "Z", "name": "error_xid",
        "type": "Fatal", "message": "XID 79 (GPU has fallen off the bus) detected on GPU PCI:0000:3b:00"}),
        '[{"component": "accelerator-nvidia-error-xid", "events": [\n', "]}]\n", ("--node", "n1")),
    "infiniband": Sample("ib.txt", lambda n: (
        f"n{n // 8}: /sys/class/infiniband/mlx5_{n % 8}/ports/1/counters/symbol_error:{n}\n")),
    "k8s-nodes": Sample("k8s-nodes.json", _listed(lambda n: {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{n}"},
        "status": {"allocatable": {"nvidia.com/gpu": "8"}, "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": _at(n) + "Z"}]}}),
        '{"apiVersion": "v1", "kind": "NodeList", "items": [\n', "]}\n",
        ("--at", "2024-03-01T12:00:00Z")),
    "k8s-events": Sample("events.json", _listed(lambda n: {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": f"e{n}"}, "reason": "TaskHung",
        "involvedObject": {"kind": "Node", "name": f"n{n % 500}"}, "message": "blocked",
        "type": "Warning", "lastTimestamp": _at(n) + "Z"}),
        '{"apiVersion": "v1", "kind": "EventList", "items": [\n', "]}\n"),
    "tickets": Sample("tickets.csv", lambda n: f"T{n},n{n % 500},{_at(n)}Z,{_at(n + 99)}Z,gpu,swap\n",
                      "ticket_id,node,opened_at,closed_at,component,action\n"),
    "node-facts": Sample("facts.csv", lambda n: f"n{n},2024-01-01T00:00:00Z,535.{n % 9},SN{n}\n",
                         "node,from_at,driver,serial\n"),
    "loki": Sample("loki.jsonl", _lines(lambda n: {
        "labels": {"hostname": f"n{n % 500}"}, "timestamp": _at(n) + "Z",
        "line": f"kernel: {_HEAD}{n}, lost" if n % 10 == 0 else f"kernel: link {n} is up"})),
    "elasticsearch": Sample("logs.json", _lines(lambda n: {"_index": "x", "_source": {
        "@timestamp": _at(n) + "Z", "host": {"name": f"n{n % 500}"},
        "message": f"kernel: {_HEAD}{n}, lost" if n % 10 == 0 else f"kernel: link {n} is up"}})),
    "scontrol-nodes": Sample("nodes.txt", lambda n: (
        f"NodeName=n{n} CPUTot=64 Gres=gpu:8 State=IDLE Partitions=main CfgTRES=cpu=64\n"),
        options=("--at", "2024-03-01T12:00:00Z")),
    "sinfo": Sample("sinfo.txt", lambda n: f"n{n}|1|idle|gpu:8|none\n",
                    "NODELIST|NODES|STATE|GRES|REASON\n",
                    options=("--at", "2024-03-01T12:00:00Z")),
    "node-inventory": Sample("nodes.csv", lambda n: f"n{n},8,H100,r{n % 99},2024-03-01T12:00:00Z\n",
                             "node,gpus,gpu_model,rack,observed_at\n"),
    "failure-log": Sample("failures.csv", lambda n: (
        f"{_at(n, '%m/%d/%Y %H:%M')},n{n % 500},Disk,it broke again {n},none\n"),
        "Date,Hardware Identifier,What Failed,Description of Failure,Action Taken\n",
        options=("--mapping", "pnnl")),
    "job-log": Sample("slurm-7.out", lambda n: f"step {n} of a job that goes on\n"),
    "training-metrics": Sample("loss.csv", lambda n: f"{n},{_at(n)},0.{n}\n", "step,time,loss\n",
                               options=("--job-id", "7")),
    "training-json": Sample("steps.jsonl", _lines(lambda n: {
        "step": n, "time": _at(n) + "Z", "train": {"loss": 2.5, "lr": 1e-4}}),
        options=("--job-id", "7")),
    "wandb-chart": Sample("chart.csv", lambda n: f'"{n}","0.{n}"\n', '"Step","run - loss"\n'),
    "mlflow": Sample("metrics.csv", lambda n: f"r,loss,0.{n},{n},{_unix(n)}000\n",
                     "run_id,key,value,step,timestamp\n"),
    "tensorboard": None,
    "megatron-golden": Sample("golden.json", lambda n: ("" if n == 0 else ", ") + f'"{n}": 2.5',
                              '{"lm loss": {"start_step": 0, "values": {', "}}}",
                              options=("--run-id", "r")),
    "mlperf": Sample("result_0.txt", lambda n: (
        f':::MLLOG {{"time_ms": {_unix(n)}000, "key": "train_loss", "value": 2.5, '
        f'"metadata": {{"step_num": {n}}}}}\n'), options=("--run-id", "r")),
    "training-lines": Sample("slurm-7.out", lambda n: (
        f" [{_at(n)}] iteration {n}/ {N_RECORDS} | elapsed time per iteration (ms): 250.0 | "
        "learning rate: 1.0E-05 | lm loss: 2.5E+00 | loss scale: 1.0 | grad norm: 0.5 |\n")),
}  # fmt: skip


def _write_trace(path: Path) -> Path:
    """A straggler trace of about as many operations."""
    shape = TraceShape(dp=32, pp=8, micro_batches=16, steps=tuple(range(6)), tp=1)
    forward = np.full((6, 32, 8, 1, 16), 0.1)
    columns = trace_columns(shape, TraceCosts(forward=forward, backward=2 * forward))
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


def _write_events(path: Path) -> Path:
    """An event file: a summary of one value a record."""

    def framed(message: bytes) -> bytes:
        length = struct.pack("<Q", len(message))
        checks = (struct.pack("<I", masked_crc(part)) for part in (length, message))
        return length + next(checks) + message + next(checks)

    with path.open("wb") as stream:
        stream.write(framed(b"\x1a\x0dbrain.Event:2"))
        for n in range(N_RECORDS):
            step = bytes([n & 0x7F | 0x80, n >> 7 & 0x7F | 0x80, n >> 14])
            head = b"\x09" + struct.pack("<d", _unix(n)) + b"\x10" + step
            stream.write(
                framed(head + b"\x2a\x0d\x0a\x0b\x0a\x04loss\x15" + struct.pack("<f", 2.5))
            )
    return path


def _written(source: str, folder: Path) -> tuple[Path, tuple[str, ...]]:
    sample = SAMPLES[source]
    if source == "sacct":
        return write_sacct(folder / "sacct.txt", N_RECORDS), ()
    if source == "tensorboard":
        return _write_events(folder / "events.out.tfevents.1.host"), ("--run-id", "r")
    if sample is None:
        return _write_trace(folder / "trace.csv"), ()
    return sample.write(folder, N_RECORDS), sample.options


def test_every_reader_has_a_sample() -> None:
    assert set(SAMPLES) == set(known_readers())


@pytest.mark.parametrize("source", SAMPLES)
def test_a_reader_holds_no_file_in_memory(source: str, tmp_path: Path) -> None:
    path, options = _written(source, tmp_path)
    arguments = ["ingest", source, str(path), "--store", str(tmp_path / "store"), "--cluster", "c"]
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments, *options, "--timezone", "UTC"],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = re.search(r"^([\d.]+) Name:.*VmHWM:\s+(\d+) kB", done.stderr, re.DOTALL | re.MULTILINE)
    assert found is not None
    seconds, memory_gb = float(found[1]), int(found[2]) / 1e6
    store = Store.open(tmp_path / "store")
    ((n_read, n_kept, n_skipped, n_rejected),) = store.rows(
        "SELECT rows_read, rows_kept, rows_skipped, rows_rejected FROM ingests"
    )
    store.close()
    assert n_read == n_kept + n_skipped + n_rejected
    assert n_read >= N_RECORDS or source == "straggler-trace"
    assert n_kept > 0
    size_mb = path.stat().st_size / 1e6
    print(
        f"\n| `{source}` | {size_mb:.1f} | {n_read / seconds / 1e3:,.1f} | {memory_gb * 1e3:,.0f} |"
    )
    assert memory_gb < MAX_MEMORY_GB
