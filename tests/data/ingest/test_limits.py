"""What is over a limit is rejected or refused with the limit named; nothing is read without end."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from pyarrow import csv as arrow_csv

from app.actions import Options, ingest_files
from data.errors import DataError, SourceError
from data.ingest import IngestResult, ingest
from data.ingest.reader import MAX_REJECTED, Rejected, Rejections
from data.ingest.readers import known_by, known_readers
from data.limits import Limits
from data.publish import writer
from data.store import Store
from data.synthetic.trace_schedule import TraceCosts, TraceShape, trace_columns

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[3]
PACK: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda content: gzip.compress(content, 6),
    "xz": lambda content: lzma.compress(content, preset=0),
    "zst": zstandard.ZstdCompressor(level=1, write_checksum=True).compress,
}
DAY = "2026-01-05T00:00:00"


def many(head: str, line: str, n: int) -> bytes:
    return (head + "".join(line.format(n=n, s=n % 60) for n in range(n))).encode()


def trace() -> pa.Table:
    forward = np.full((3, 2, 2, 1, 4), 0.1)
    shape = TraceShape(dp=2, pp=2, micro_batches=4, steps=(1, 2, 5), tp=4)
    columns = trace_columns(shape, TraceCosts(forward=forward, backward=2 * forward))
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def trace_csv() -> bytes:
    out = io.BytesIO()
    arrow_csv.write_csv(trace(), out)
    return out.getvalue()


def trace_parquet() -> bytes:
    out = io.BytesIO()
    pq.write_table(trace(), out)
    return out.getvalue()


CHECK = '{{"node":"n1","health_check":"ib","result":2,"end_time":17000000{s:02},"_msg":"{n}"}}'
SAMPLES: dict[str, tuple[str, str, bytes]] = {
    "sacct": ("sacct", "f.txt", many(
        "JobID|State|Submit|Start|End|NNodes|AllocTRES|NodeList\n",
        f"{{n}}|COMPLETED|{DAY}|{DAY}|2026-01-06T00:00:00|1|gres/gpu=8|n1\n", 250)),
    "pbs": ("pbs", "f.txt", many(
        "", "03/01/2024 13:01:40;E;{n}.server;user=ada queue=gpu ctime=1709294400 start=1709294500 "
        "end=1709298100 exec_host=n1/0*4 Exit_status=1\n", 220)),
    "sge": ("sge", "f.txt", many(
        "", "gpu.q:n1:g:ada:train:{n}:sge:0:1709294400:1709294500:1709298100:0:0:"
        "3600.5:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:proj:dept:NONE:4:0:1.0:0:0:-l gpu=1:0:NONE:1:0:0\n",
        220)),
    "lsf": ("lsf", "f.txt", many(
        "", '"JOB_FINISH" "10.1" 1709298100 {n} 1000 33 8 1709294400 0 0 1709294500 "ada" "gpu" "" '
        '"" "" "h0" "/d" "" "o" "e" "f" 1 "n1" 1 "n1" 32 60.0 "train" "run" ' + "0 " * 19
        + '"" "proj" 256 8 "" "" 0 0 0 "" "" "" "" 0 "" 0 "" -1\n', 220)),
    "job table": ("job-table", "f.csv", many(
        "job_id,state,submit_at,n_gpus\n", "{n},FAILED,2026-01-05T00:00:{s:02}Z,8\n", 300)),
    "philly": ("philly", "f.json", many(
        "", '{{"jobid":"a_{n}","vc":"v","status":"Pass","submitted_time":"2017-10-07 01:11:{s:02}",'
        '"attempts":[]}}\n', 220)),
    "ras": ("ras-log", "f.log", many(
        "", "- 11185363{s:02} 2005.06.11 R{n} 2005-06-11-17.32.07.581048 R{n} RAS KERNEL FATAL x\n",
        220)),
    "jobcomp": ("jobcomp", "f.json", many(
        "", '{{"jobid":{n},"@start":"2024-03-01T12:01:40Z","@end":"2024-03-01T13:01:40Z","@submit":'
        '"2024-03-01T12:00:00Z","elapsed":3600,"nodes":"n1","total_nodes":1,"state":"FAILED",'
        '"exit_code":"1:0"}}\n', 220)),
    "sacctmgr": ("sacctmgr-events", "f.txt", many(
        "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\n",
        "c|n{n}|2026-01-05T00:00:{s:02}|2026-01-06T00:00:00|DOWN|broken fan {n}|root\n", 250)),
    "kernel": ("kernel-log", "f.log", many(
        "", "Jan  5 00:00:{s:02} n1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid={n}, lost\n", 250)),
    "journal": ("kernel-log", "f.json", many(
        "", '{{"MESSAGE":"NVRM: Xid (PCI:0000:3b:00): 79, pid={n}, x","_HOSTNAME":"n1",'
        '"__REALTIME_TIMESTAMP":"17000000{s:02}000000","_TRANSPORT":"kernel"}}\n', 130)),
    "gcm": ("gcm-health", "f.json", many("", CHECK + "\n", 220)),
    "gcm array": ("gcm-health", "f.json", b"[\n" + many("", CHECK + ",\n", 220)[:-2] + b"\n]\n"),
    "nodes": ("scontrol-nodes", "f.txt", many(
        "", "NodeName=n{n} CPUTot=64 Gres=gpu:8 State=IDLE Partitions=main CfgTRES=cpu=64\n", 250)),
    "sinfo": ("sinfo", "f.txt", many(
        "NODELIST|NODES|STATE|GRES|REASON\n", "n{n}|1|idle|gpu:8|none\n", 500)),
    "inventory": ("node-inventory", "f.csv", many(
        "node,gpus,gpu_model,rack,observed_at\n", "n{n},8,H100,r{s},2026-01-05T00:00:00Z\n", 400)),
    "tickets": ("tickets", "f.csv", many(
        "ticket_id,node,opened_at,component\n", "T{n},n{s},2026-01-05T00:00:{s:02}Z,gpu\n", 400)),
    "facts": ("node-facts", "f.csv", many(
        "node,from_at,driver\n", "n{n},2026-01-05T00:00:{s:02}Z,550.54.15\n", 400)),
    "failures": ("failure-log", "f.csv", many(
        "Date,Hardware Identifier,What Failed,Description of Failure,Action Taken\n",
        '01/05/2006 10:{s:02},n{n},Disk,"it ""broke"", again {n}",none\n', 300)),
    "pods": ("k8s-pods", "f.json", b'{"kind":"List","apiVersion":"v1","items":[\n' + many(
        "", '{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p{n}","uid":"{n}",'
        '"creationTimestamp":"2026-01-05T00:00:{s:02}Z"}},"spec":{{"nodeName":"n1"}},'
        '"status":{{"phase":"Running"}}}},\n', 220)[:-2] + b"\n]}\n"),
    "k8s workloads": ("k8s-workloads", "f.json", many(
        "", '{{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"Workload","metadata":{{"name":"w{n}",'
        '"uid":"{n}","creationTimestamp":"2026-01-05T00:00:{s:02}Z"}},"spec":{{"queueName":"q"}},'
        '"status":{{"conditions":[{{"type":"Admitted","status":"True",'
        '"lastTransitionTime":"2026-01-05T01:00:{s:02}Z"}}]}}}}\n', 220)),
    "gpud": ("gpud", "f.json", b'[{"component":"xid","events":[\n' + many(
        "", '{{"time":"2026-01-05T00:00:{s:02}Z","name":"error_xid","type":"Fatal","message":'
        '"XID 79 (x{n}) detected on GPU PCI:0000:05:00"}},\n', 220)[:-2] + b"\n]}]\n"),
    "k8s nodes": ("k8s-nodes", "f.json", many(
        "", '{{"apiVersion":"v1","kind":"Node","metadata":{{"name":"n{n}"}},"status":{{"allocatable":'
        '{{"nvidia.com/gpu":"8"}},"conditions":[{{"type":"Ready","status":"True",'
        '"lastTransitionTime":"2026-01-05T00:00:{s:02}Z"}}]}}}}\n', 220)),
    "k8s events": ("k8s-events", "f.json", many(
        "", '{{"apiVersion":"v1","kind":"Event","metadata":{{"name":"e{n}"}},"reason":"TaskHung",'
        '"involvedObject":{{"kind":"Node","name":"n1"}},"message":"{n}","type":"Warning",'
        '"lastTimestamp":"2026-01-05T00:00:{s:02}Z"}}\n', 220)),
    "loki": ("loki", "f.json", many(
        "", '{{"labels":{{"host":"n{s}"}},"line":"NVRM: Xid (PCI:0000:3b:00): 79, pid={n}, x",'
        '"timestamp":"2026-01-05T00:00:{s:02}Z"}}\n', 220)),
    "elastic": ("elasticsearch", "f.json", many(
        "", '{{"_index":"j","_source":{{"host":"n1","message":"NVRM: Xid (PCI:0000:3b:00): 79, '
        'pid={n}, x","@timestamp":"2026-01-05T00:00:{s:02}Z"}}}}\n', 220)),
    "metrics": ("dcgm", "f.prom", many(
        "", 'DCGM_FI_DEV_GPU_TEMP{{gpu="0",Hostname="n{n}"}} 4{s:02} 17000000{s:02}000\n', 250)),
    "infiniband": ("infiniband", "f.txt", many(
        "", "n{n}: /sys/class/infiniband/mlx5_{s}/ports/1/counters/link_downed:{s}\n", 250)),
    "prometheus": ("prometheus-json", "f.json", many(
        "", '{{"metric":{{"__name__":"DCGM_FI_DEV_GPU_TEMP","gpu":"0","instance":"n{n}:9400"}},'
        '"values":[[17000000{s:02}.5,"41"]]}}\n', 220)),
    "job log": ("job-log", "slurm-7.out", many("", "step {n} of a job that goes on\n", 600)),
    "training": ("training-metrics", "f.csv", many(
        "step,time,loss\n", "{n},2026-01-05T00:00:{s:02},0.{n}\n", 500)),
    "training json": ("training-json", "f.json", many(
        "", '{{"step":{n},"time":"2026-01-05T00:00:{s:02}Z","train":{{"loss":0.{n}}}}}\n', 500)),
    "training lines": ("training-lines", "f.out", many(
        "", " [2026-01-05 00:00:{s:02}] iteration {n}/ 500 | lm loss: 2.{n}E+00 | grad norm: 0.5 |\n",
        300)),
    "wandb chart": ("wandb-chart", "f.csv", many('"Step","r - loss"\n', '"{n}","0.{n}"\n', 900)),
    "mlflow": ("mlflow", "f.csv", many(
        "run_id,key,value,step,timestamp\n", "r,loss,0.{n},{n},17000000{s:02}000\n", 500)),
    "mlperf": ("mlperf", "f.txt", many(
        "", ':::MLLOG {{"time_ms":17000000{s:02}000,"key":"train_loss","value":2.{n},"metadata":'
        '{{"step_num":{n}}}}}\n', 300)),
    "trace": ("straggler-trace", "f.csv", trace_csv()),
    "trace, Parquet": ("straggler-trace", "f.parquet", trace_parquet()),
}  # fmt: skip
"""Source, name and content of an input that is read as a whole."""


def stated_for(source: str) -> dict[str, Any]:
    """What the samples of a source need to have stated."""
    stated = {"node": "n1", "job_id": "7", "mapping": "pnnl"}
    return {name: value for name, value in stated.items() if source in known_by()[name]}


def read(folder: Path, name: str, content: bytes, **stated: Any) -> IngestResult:
    """What becomes of an input; nothing is published."""
    source, file, _ = SAMPLES[name]
    path = folder / file
    path.write_bytes(content)
    options = Options(
        node="n1",
        job_id="7",
        mapping="pnnl" if source == "failure-log" else None,
        year=2026,
        timezone="UTC",
        **stated,
    )
    with writer(folder / "store") as building:
        return ingest(building, source, str(path), options)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        name
        for name in SAMPLES
        if not name.startswith(
            ("trace", "jobcomp", "loki", "elastic", "philly", "pods", "k8s", "prom", "gpud")
        )
    ],
)
def test_a_line_over_the_limit_is_a_rejected_record_and_the_others_are_read(
    tmp_path: Path, name: str
) -> None:
    head, _, rest = SAMPLES[name][2].partition(b"\n")
    limits = Limits(line_mb=0.002)
    result = read(tmp_path, name, head + b"\n" + b"z" * 2001 + b"\n" + rest, limits=limits)
    if name == "job log":  # of any line it keeps the end
        assert (result.rows_kept, result.rows_rejected) == (601, 0)
        return
    assert result.rejected_by_reason == {"line longer than the limit of 0.002 MB": 1}
    assert result.rows_kept >= 130
    assert result.rows_skipped == 0


def test_a_rejected_line_names_its_number_the_limit_and_how_it_begins(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "site.toml").write_text("[limits]\nline_mb = 0.01\n")
    _, _, content = SAMPLES["sacct"]
    lines = content.splitlines(keepends=True)
    lines[100:100] = [b"9" * 10_000 + b"\n", b"8" * 10_001 + b"\n"]
    (tmp_path / "f.txt").write_bytes(b"".join(lines))
    ingest_files(tmp_path / "store", "sacct", [str(tmp_path / "f.txt")], Options())
    store = Store.open(tmp_path / "store")
    rows = store.rows("SELECT line_no, reason, left(raw, 3), length(raw) FROM rejected_rows")
    store.close()
    assert sorted(rows) == [
        (101, "too few fields", "999", 2000),
        (102, "line longer than the limit of 0.01 MB", "888", 2000),
    ]


@pytest.mark.parametrize(("size", "n_long"), [(1000, 0), (1001, 1), (3 << 22, 1)])
@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_line_is_as_long_as_its_bytes_wherever_blocks_end(
    tmp_path: Path, size: int, n_long: int, end: bytes
) -> None:
    limits = Limits(line_mb=size / 1e6 if n_long == 0 else 0.001)
    content = many("", CHECK + "\n", 20) + b"y" * size + end
    result = read(tmp_path, "gcm", content, limits=limits)
    assert result.rejected_by_reason == (
        {limits.line_reason: 1} if n_long else {"not a JSON object": 1}
    )


@pytest.mark.parametrize("name", ["sacct", "sacctmgr", "failures", "training", "trace"])
def test_a_header_of_too_many_fields_is_refused_with_the_limit(tmp_path: Path, name: str) -> None:
    _, _, content = SAMPLES[name]
    head, _, rest = content.partition(b"\n")
    divider = b"|" if b"|" in head else b","
    wide = head + divider.join(f"c{n}".encode() for n in range(100)) + b"\n" + rest
    with pytest.raises(SourceError, match="more fields than the limit of 64"):
        read(tmp_path, name, wide, limits=Limits(fields=64))


@pytest.mark.parametrize("name", ["sacct", "sacctmgr", "failures", "training"])
def test_a_record_of_too_many_fields_is_rejected(tmp_path: Path, name: str) -> None:
    _, _, content = SAMPLES[name]
    divider = b"|" if b"|" in content else b","
    result = read(tmp_path, name, content + divider * 100 + b"\n", limits=Limits(fields=64))
    assert result.rows_rejected == 1
    told = "number of fields differs from the header" if name == "failures" else "limit of 64"
    assert told in next(iter(result.rejected_by_reason))


@pytest.mark.parametrize("name", ["journal", "gcm", "gcm array"])
@pytest.mark.parametrize("n_levels", [20, 100_000])
def test_json_deeper_than_the_limit_is_rejected_and_no_parser_goes_into_it(
    tmp_path: Path, name: str, n_levels: int
) -> None:
    _, _, content = SAMPLES[name]
    first = content[content.index(b"{") : content.index(b"}") + 1]
    nested = b',"x":' + b"[" * n_levels + b'"]]]]["' + b"]" * n_levels + b"}"
    deep = content.replace(first, first[:-1] + nested, 1)
    result = read(tmp_path, name, deep, limits=Limits(json_depth=16))
    assert result.rejected_by_reason == {"JSON deeper than the limit of 16": 1}


def test_brackets_in_text_are_no_depth(tmp_path: Path) -> None:
    record = {"node": "n", "health_check": "x", "result": 1, "end_time": 1_700_000_000}
    line = json.dumps(record | {"_msg": '[[[[[[{{{{{{"\\' * 20})
    assert read(tmp_path, "gcm", line.encode(), limits=Limits(json_depth=8)).rows_kept == 1


def test_an_array_longer_than_any_piece_of_it_is_read_with_the_right_lines(tmp_path: Path) -> None:
    records = [
        json.dumps(
            {
                "node": "n",
                "health_check": "x",
                "result": 2,
                "end_time": 1_700_000_000 + n,
                "_msg": "m" * 5_000 * (n % 3),
            },
            indent=1,
        )
        for n in range(60)
    ]
    records[40] = "41"
    result = read(tmp_path, "gcm array", ("[" + ",\n".join(records) + "]").encode())
    assert (result.rows_kept, result.rejected_by_reason) == (59, {"not a JSON object": 1})


def test_quotes_that_are_never_closed_do_not_read_the_file_again_and_again(tmp_path: Path) -> None:
    head, _, rest = SAMPLES["failures"][2].partition(b"\n")
    open_quotes = b'x,"\n' * 30_001
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("data.ingest.formats.tabular.MAX_GIVEN_BACK", 100_000)
        result = read(tmp_path, "failures", head + b"\n" + open_quotes + rest)
    assert result.rows_kept + result.rows_rejected >= 300
    assert result.rows_kept >= 299


def test_rejected_records_are_all_counted_and_the_first_are_kept() -> None:
    rejections = Rejections(
        Rejected(n, "odd" if n % 2 else "even", "x") for n in range(MAX_REJECTED + 5)
    )
    both = Rejections([Rejected(0, "even", "x")])
    both.extend(rejections)
    assert (len(both), both.total) == (MAX_REJECTED, MAX_REJECTED + 6)
    assert both.ordered().by_reason == {"odd": MAX_REJECTED // 2 + 2, "even": MAX_REJECTED // 2 + 4}


@pytest.mark.parametrize("name", ["failures", "trace, Parquet"])
def test_parquet_that_unfolds_without_end_is_refused(tmp_path: Path, name: str) -> None:
    n_rows = 2_000_000
    same = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n_rows, np.int8)), pa.array(["n1"]))
    header = HEADS["failure-log"].decode().strip().split(",")
    columns = header if name == "failures" else trace().column_names
    out = io.BytesIO()
    pq.write_table(pa.table(dict.fromkeys(columns, same)), out)
    assert len(out.getvalue()) < 100_000
    with pytest.raises(SourceError, match="unfolds to more than 200 times its size, the limit"):
        read(tmp_path, name, out.getvalue())


def read_or_refused(folder: Path, name: str, content: bytes, **stated: Any) -> IngestResult | str:
    """What becomes of an input, or the one line that refuses it."""
    try:
        return read(folder, name, content, **stated)
    except DataError as error:
        refused = str(error)
    assert "\n" not in refused
    return refused


def cut_anywhere(folder: Path, name: str, step: int) -> int:
    """A text that ends early is read to there, or refused; never more records than it has.

    How often it was read.
    """
    content = SAMPLES[name][2]
    whole = read(folder, name, content)
    n_read = 0
    for at in range(step, len(content), step):
        result = read_or_refused(folder, name, content[:at])
        if isinstance(result, str):
            assert name.startswith("trace"), (at, result)
            continue
        n_read += 1
        assert result.rows_read == result.rows_kept + result.rows_skipped + result.rows_rejected
        assert result.rows_rejected <= 1, at
        assert result.rows_kept <= whole.rows_kept
    return n_read


def cut_archive(folder: Path, name: str, step: int, kind: str) -> int:
    """An archive that ends early is refused, the store as it was, or read to there if asked.

    How often it was refused.
    """
    source, _, content = SAMPLES[name]
    packed = PACK[kind](content + np.random.default_rng(0).bytes(6_000).hex().encode())
    root = folder / "store"
    ingest_files(root, "job-log", [written(folder / "slurm-1.out", b"a\n")], Options())
    before = published(root)
    for at in range(step, len(packed), step):
        path = written(folder / SAMPLES[name][1], packed[:at])
        with pytest.raises(DataError, match="data ends early or is broken") as refused:
            ingest_files(root, source, [path], Options(**stated_for(source), partial=False))
        assert "\n" not in str(refused.value)
        assert published(root) == before
        result = read_or_refused(folder, name, packed[:at], partial=True)
        if not isinstance(result, str):
            assert any("ends early or is broken" in text for text in result.notices)
    return len(range(step, len(packed), step))


def written(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    return str(path)


def published(root: Path) -> dict[str, bytes]:
    return {
        p.name: p.read_bytes()
        for p in root.rglob("*")
        if p.is_file() and not p.name.startswith(("writer.lock", "state.sqlite-"))
    }


def test_what_is_tried_of_each_reader_is_tried_of_all() -> None:
    whole_documents = {
        *("sacct-json", "redfish", "nvsentinel", "ipmi-sel"),
        *("megatron-golden", "tensorboard", "flight-recorder", "reduced-metrics"),
        *("reduced-jobs", "reduced-events"),
    }
    sampled = {source for source, _, _ in SAMPLES.values()}
    assert sampled | whole_documents == set(HEADS) == set(known_readers())


@pytest.mark.parametrize("name", ["sacct", "gcm array", "failures", "trace"])
def test_an_input_cut_at_some_byte_is_read_to_there_or_refused(tmp_path: Path, name: str) -> None:
    assert cut_anywhere(tmp_path, name, 9_999) or name == "trace"


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_an_input_cut_at_every_thousandth_byte_is_read_to_there_or_refused(
    tmp_path: Path, name: str
) -> None:
    assert cut_anywhere(tmp_path, name, 1_000) or name.startswith("trace")


@pytest.mark.parametrize(
    ("name", "kind"), [("sacct", "gz"), ("gcm array", "xz"), ("kernel", "zst")]
)
def test_an_archive_cut_at_some_byte_is_refused(tmp_path: Path, name: str, kind: str) -> None:
    assert cut_archive(tmp_path, name, 5_000, kind) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_an_archive_cut_at_every_thousandth_byte_is_refused(tmp_path: Path, name: str) -> None:
    kind = list(PACK)[list(SAMPLES).index(name) % len(PACK)]
    assert cut_archive(tmp_path, name, 1_000, kind) > 0


FILLERS = {
    "letters": b"a", "line ends": b"\n", "short lines": b"x\n", "pipes": b"|", "commas": b",",
    "lines of pipes": b"|" * 4_000 + b"\n", "torn lines": b"|||||||||\n", "brackets": b"[",
    "objects": b'{"a":', "list": b"{},", "empty objects": b"{}\n", "quotes": b'"x\n',
    "open fields": b'","\n', "faults": b"NVRM: Xid (PCI:0000:3b:00): 79, x\n",
    "carriage returns": b"x|\ry\n",
}  # fmt: skip
HEADS = {
    "sacct": b"JobID|State|Submit|Start|End|NNodes|AllocTRES|NodeList\n",
    "sacct-json": b'{"jobs": [\n',
    "jobcomp": b'{"jobid":1,"@start":"2024-03-01T12:01:40Z","state":"FAILED","nodes":"n1"}\n',
    "pbs": b"03/01/2024 13:01:40;E;1.server;user=ada start=1709294500 end=1709298100\n",
    "lsf": b'"JOB_FINISH" "10.1" 1709298100 7 1000 33 8 1709294400 0 0 1709294500 "ada"\n',
    "sge": b"# Version: 8.1\n",
    "job-table": b"job_id,state,submit_at,n_gpus\n",
    "philly": b'{"jobid":"a_1","vc":"v","status":"Pass","attempts":[]}\n',
    "redfish": b'{"Members": [\n',
    "nvsentinel": b'{"events": [\n',
    "gpud": b'[{"component":"xid","events":[\n',
    "infiniband": b'# Port extended counters: Lid 4 port 1\nErrors for "n1 mlx5_0"\n',
    "k8s-workloads": b'{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"WorkloadList","items": [\n',
    "sacctmgr-events": b"Cluster|NodeName|TimeStart|TimeEnd|State|Reason\n",
    "kernel-log": b"[    1.0] NVRM: Xid (PCI:0000:3b:00): 79, lost\n",
    "gcm-health": many("", CHECK + "\n", 1),
    "ras-log": b"- 1118536327 2005.06.11 R1 2005-06-11-17.32.07.581048 R1 RAS KERNEL FATAL x\n",
    "ipmi-sel": b"SEL Record ID          : 0001\n",
    "scontrol-nodes": b"NodeName=n1 CPUTot=64 Gres=gpu:8 State=IDLE\n",
    "sinfo": b"NODELIST|NODES|STATE|GRES|REASON\n",
    "node-inventory": b"node,gpus,observed_at\n",
    "tickets": b"ticket_id,node,opened_at\n",
    "node-facts": b"node,from_at,driver\n",
    "failure-log": b"Date,Hardware Identifier,What Failed,Description of Failure\n",
    "job-log": b"begun\n",
    "dcgm": b"# TYPE DCGM_FI_DEV_GPU_TEMP gauge\nDCGM_FI_DEV_GPU_TEMP 41\n",
    "prometheus-json": b'{"status":"success","data":{"resultType":"matrix","result":[\n',
    "k8s-pods": b'{"apiVersion":"v1","kind":"PodList","items": [\n',
    "k8s-nodes": b'{"apiVersion":"v1","kind":"NodeList","items": [\n',
    "k8s-events": b'{"apiVersion":"v1","kind":"EventList","items": [\n',
    "loki": b'{"labels":{},"line":"x","timestamp":"2026-01-05T00:00:00Z"}\n',
    "elasticsearch": b'{"@timestamp":"2026-01-05T00:00:00Z","message":"x"}\n',
    "training-metrics": b"step,time,loss\n1,2026-01-01T00:00:00,1\n",
    "training-json": b'{"step":1,"loss":2.5}\n',
    "training-lines": b" iteration 1/ 9 | lm loss: 2.5E+00 |\n",
    "wandb-chart": b'"Step","r - loss"\n1,2.5\n',
    "mlflow": b"run_id,key,value,step,timestamp\n",
    "megatron-golden": b'{"lm loss":{"start_step":1,"values":{\n',
    "mlperf": b':::MLLOG {"key":"train_loss"}\n',
    "tensorboard": bytes.fromhex("0f000000000000006d532b09") + b"\x1a\x0dbrain.Event:2",
    "straggler-trace": b"step,dp_rank,stage,optype,seq_id,mc,start_ts,duration\n",
    "flight-recorder": b'{"rank": 0, "entries": [\n',
    "reduced-metrics": b'{"faultline_reduction": 1, "kind": "metrics", "inputs": [\n',
    "reduced-jobs": b'{"faultline_reduction": 1, "kind": "jobs", "inputs": [\n',
    "reduced-events": b'{"faultline_reduction": 1, "kind": "events", "inputs": [\n',
}
READ = """
import re, sys, time
from pathlib import Path
from app.actions import Options, ingest_files
from data.errors import DataError
from data.ingest.readers import known_by
folder, *asked = sys.argv[1:]
for number, (source, path) in enumerate(zip(asked[::2], asked[1::2], strict=True)):
    stated = {"node": "n1", "job_id": "7", "mapping": "pnnl"}
    options = Options(**{key: stated[key] for key in stated if source in known_by()[key]})
    begin = time.process_time()
    try:
        store = Path(folder, f"store-{number}")
        told = ingest_files(store, source, [path], options)[0][0].rejected_by_reason
    except DataError as error:
        told = str(error)
    peak_mb = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024
    print(source, round(time.process_time() - begin), peak_mb, " ".join(str(told).split())[:400], sep="\\t", flush=True)
"""


def bombs_end(folder: Path, bombs: list[tuple[str, bytes]], *, most_s: int = 60) -> list[str]:
    """Reads each bomb in turn: within 1 GB and so many seconds; what was told of each.

    The kernel's peak of this program: that of `getrusage` is at least what the process held that
    started it, which after many tests is a gigabyte itself.
    """
    asked: list[str] = []
    for number, (source, packed) in enumerate(bombs):
        name = f"slurm-{number + 1}.out" if source == "job-log" else f"{number}.txt"
        asked += [source, written(folder / name, packed)]
    done = subprocess.run(
        [sys.executable, "-c", READ, str(folder), *asked],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=1_800,
    )  # fmt: skip
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert (done.returncode, len(rows)) == (0, len(bombs)), done.stderr
    for source, seconds, peak_mb, told in rows:
        assert int(seconds) <= most_s, (source, seconds, told)
        assert int(peak_mb) <= 1_000, (source, peak_mb, told)
    return [told for *_, told in rows]


def bomb(
    source: str, filler: bytes, kind: str, *, head: bool = True, n_bytes: int = 9_900_000
) -> bytes:
    """As much as unfolds without regard of its ratio."""
    content = (HEADS[source] if head else b"") + filler * (n_bytes // len(filler))
    return PACK[kind](content)


def larger(kind: str) -> bytes:
    """Unfolds to 2 GB: parts of an archive are read on."""
    return PACK[kind](b"a line of a log\n" * 1_250_000) * 100


@pytest.mark.slow
def test_some_bombs_end_within_a_gigabyte_and_a_minute(tmp_path: Path) -> None:
    told = bombs_end(
        tmp_path,
        [
            ("sacct", bomb("sacct", b"\n", "gz", n_bytes=2_000_000)),
            ("gcm-health", bomb("gcm-health", b"[", "xz", head=False, n_bytes=1_000_000)),
            ("kernel-log", larger("zst")),
            ("training-metrics", bomb("training-metrics", b",", "gz", head=False)),
        ],
    )
    assert told[0] == "{}"
    assert "JSON deeper than the limit of 64" in told[1]
    assert "unfolds to more than 200 times its size, the limit" in told[2]
    assert "more fields than the limit of 4,096" in told[3]


@pytest.mark.slow
@pytest.mark.parametrize("kind", PACK)
def test_bombs_by_size_are_refused_within_a_gigabyte_and_a_minute(
    tmp_path: Path, kind: str
) -> None:
    for told in bombs_end(tmp_path, [(source, larger(kind)) for source in HEADS]):
        assert "unfolds to more than 200 times its size" in told


@pytest.mark.slow
@pytest.mark.parametrize("source", HEADS)
def test_bombs_by_line_end_within_a_gigabyte_and_six_seconds(tmp_path: Path, source: str) -> None:
    first = list(HEADS).index(source)
    kinds = [list(PACK)[(first + number) % len(PACK)] for number in range(len(FILLERS))]
    bombs = [
        (source, bomb(source, filler, kind, head=head, n_bytes=400_000))
        for kind, filler in zip(kinds, FILLERS.values(), strict=True)
        for head in (True, False)
    ]
    assert len(bombs_end(tmp_path, bombs, most_s=6)) == len(bombs)
