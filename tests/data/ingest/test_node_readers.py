"""Exports of a scheduler's nodes, and lists of a site's own: scontrol, sinfo, slurmrestd, CSV."""

from __future__ import annotations

import json
import tracemalloc
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from data.errors import SourceError
from data.ingest.formats.source import opened
from data.ingest.reader import Batch, Options
from data.ingest.readers import known_readers

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Row = dict[str, Any]
Read = Any
AT = datetime(2024, 3, 1, 12, tzinfo=UTC)
DRAINED = """\
NodeName=gpu02 Arch=x86_64 CoresPerSocket=32
   CPUAlloc=0 CPUEfctv=128 CPUTot=128 CPULoad=0.01
   AvailableFeatures=a100,ib
   ActiveFeatures=a100
   Gres=gpu:a100:8(S:0-1),shard:a100:64
   NodeAddr=gpu02 NodeHostName=gpu02 Version=23.11.4
   OS=Linux 5.15.0-91-generic #101-Ubuntu SMP Tue Nov 14 13:30:08 UTC 2023
   RealMemory=1031000 AllocMem=0 FreeMem=1012210 Sockets=2 Boards=1
   State=DOWN*+DRAIN ThreadsPerCore=2 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=gpu
   BootTime=None SlurmdStartTime=2024-02-27T08:12:01
   CfgTRES=cpu=128,mem=1031000M,billing=128,gres/gpu=8,gres/gpu:a100=8
   AllocTRES=
   Reason=State=DOWN since Gres=gpu was lost [root@2024-03-01T09:30:00]
   Comment=(null)
"""


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[Batch, list[Row]]]:
    """Reads a text as the one reader that recognises it, or as `source`; its rows of nodes."""
    folder = tmp_path_factory.mktemp("nodes")

    def read(content: str, source: str = "", **options: Any) -> tuple[Batch, list[Row]]:
        path = folder / "nodes"
        path.write_text(content, encoding="utf-8")
        with duckdb.cursor() as connection, opened(str(path), folder) as found:
            names = [
                name for name, reader in known_readers().items() if reader.sniff(content[:16_384])
            ]
            reader = known_readers()[source or ",".join(names)]
            batch = reader.read(found, Options(**{"at": AT} | options), connection)
        frame = batch.tables["node_inventory"].astype(object)  # type: ignore[union-attr]
        rows = frame.where(frame.notna(), None).to_dict("records")
        assert batch.rows_read == batch.rows_kept + sum(batch.skipped_by_reason.values()) + (
            batch.rejected.total
        )
        return batch, rows

    return read


def told(rows: list[Row], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


def test_a_drained_node_of_scontrol_is_read_whatever_its_reason_says(read: Read) -> None:
    _, (row,) = read(DRAINED, timezone="Europe/Berlin")
    assert row == {
        "cluster": "cluster", "node": "gpu02", "observed_at": AT, "gpus": 8, "gpu_model": "a100",
        "state": "DOWN+DRAIN+NOT_RESPONDING", "reason": "State=DOWN since Gres=gpu was lost",
        "reason_user": "root", "reason_at": datetime(2024, 3, 1, 8, 30, tzinfo=UTC),
        "partitions": "gpu", "features": "a100", "rack": None, "topology": None, "cpus": 128,
        "memory_mb": 1_031_000, "driver": None, "boot_at": None, "source": "scontrol-nodes",
        "os": "Linux 5.15.0-91-generic #101-Ubuntu SMP Tue Nov 14 13:30:08 UTC 2023",
    }  # fmt: skip


def test_one_line_a_node_is_the_same_as_a_block(read: Read) -> None:
    block, line = read(DRAINED)[1], read(" ".join(DRAINED.split("\n")))[1]
    assert line == block


def test_a_time_in_the_export_counts_for_the_nodes_after_it_and_the_option_for_all(
    read: Read,
) -> None:
    text = "".join(
        f"Node data as of 2024-03-0{day}T10:00:00, record count 1\nNodeName=n1 Gres=gpu:{n}\n"
        for day, n in ((1, 8), (2, 4))
    )
    _, rows = read(text, at=None, timezone="UTC")
    assert told(rows, "observed_at", "gpus") == [
        (datetime(2024, 3, 1, 10, tzinfo=UTC), 8), (datetime(2024, 3, 2, 10, tzinfo=UTC), 4),
    ]  # fmt: skip
    assert told(read(text)[1], "observed_at", "gpus") == [(AT, 8)]


def test_without_any_time_the_one_of_the_file_is_taken_and_told(read: Read) -> None:
    batch, (row,) = read("NodeName=n1 Gres=gpu:8\n", at=None)
    assert row["observed_at"] == batch.first_at != AT
    assert any("pass --at TIME" in notice for notice in batch.notices)
    assert not read("NodeName=n1 Gres=gpu:8\n")[0].notices


def test_slurm_conf_names_many_nodes_in_a_line(read: Read) -> None:
    batch, rows = read(
        "NodeName=DEFAULT CPUs=64\nNodeName=n[1-2] Gres=gpu:h100:4 CPUs=8\n# c\nPartitionName=x\n"
    )
    assert told(rows, "node", "gpus", "cpus") == [("n1", 4, 8), ("n2", 4, 8)]
    assert batch.skipped_by_reason == {"default": 1}
    assert [(row.line_no, row.reason) for row in batch.rejected] == [(4, "belongs to no node")]


@pytest.mark.parametrize(
    ("gres", "tres", "gpus", "model"),
    [
        ("gpu:8", "cpu=8,gres/gpu=8", 8, None),
        ("(null)", "cpu=8,gres/gpu=8", 8, None),
        ("(null)", "cpu=8,mem=1M", 0, None),
        ("gpu:a100:8", "cpu=8,mem=1M", 8, "a100"),
        ("gpu:a100:no_consume:8", "", 8, "a100"),
        ("gpu:tesla:2,gpu:kepler:2,mps:400,bandwidth:lustre:no_consume:4G", "", 4, "tesla+kepler"),
        ("shard:64,mps:800", "cpu=8,gres/shard=64", 0, None),
        ("gpu:a100_3g.20gb:2,gpu:a100_1g.5gb:1", "gres/gpu=3", 3, "a100_3g.20gb+a100_1g.5gb"),
        ("gpu:a100:8", "gres/gpu=7", 7, "a100"),
        ("craynetwork:4", "gres/gpu:h100=4,gres/gpumem=0", 4, "h100"),
    ],
)
def test_gpus_are_those_that_jobs_can_have(
    read: Read, gres: str, tres: str, gpus: int, model: str | None
) -> None:
    _, rows = read(f"NodeName=n1 Gres={gres}\n   CfgTRES={tres} State=IDLE\n")
    assert told(rows, "gpus", "gpu_model") == [(gpus, model)]


def test_gpus_cut_off_by_a_narrow_column_are_rejected_not_counted_as_one(read: Read) -> None:
    batch, rows = read("NODELIST|GRES|STATE\nn1|gpu:nvidia_h100_80gb|idle\nn2|gpu:h100:4|idle\n")
    assert told(rows, "node", "gpus") == [("n2", 4)]
    assert dict(batch.rejected.by_reason) == {"GPUs without a count: a column too narrow": 1}


def test_what_says_nothing_of_gpus_leaves_them_unknown(read: Read) -> None:
    batch, rows = read("NODELIST NODES PARTITION STATE\nn[1-2]  2 gpu*  idle~\n")
    assert told(rows, "node", "gpus", "state", "partitions") == [
        (node, None, "IDLE+POWERED_DOWN", "gpu") for node in ("n1", "n2")
    ]
    assert any("how many GPUs" in notice for notice in batch.notices)


def test_sinfo_long_says_when_and_why_with_blanks_in_the_reason(read: Read) -> None:
    text = (
        "Fri Mar  1 11:00:00 2024\n"
        "NODELIST   NODES PARTITION       STATE CPUS    S:C:T MEMORY TMP_DISK WEIGHT AVAIL_FE REASON\n"
        "n1             1      gpu*        idle 128    2:32:2 500000        0      1   (null) none\n"
        "n2             1      gpu*      drain* 128    2:32:2 500000        0      1     a100 bad fan 3\n"
    )  # fmt: skip
    _, rows = read(text, at=None, timezone="UTC")
    assert told(rows, "node", "observed_at", "state", "reason", "cpus") == [
        ("n1", datetime(2024, 3, 1, 11, tzinfo=UTC), "IDLE", None, 128),
        ("n2", datetime(2024, 3, 1, 11, tzinfo=UTC), "DRAIN+NOT_RESPONDING", "bad fan 3", 128),
    ]


def test_columns_of_a_width_are_cut_where_their_header_stands(read: Read) -> None:
    text = "REASON              USER  NODELIST  STATE\nNot responding      root  n1        down*\n"
    assert told(read(text)[1], "node", "reason", "reason_user") == [
        ("n1", "Not responding", "root")
    ]


def test_a_node_of_several_partitions_is_one_row(read: Read) -> None:
    batch, rows = read(
        "NODELIST|PARTITION|GRES\nn1|a|gpu:8\nn1|b*|gpu:8\n\nNODELIST|PARTITION|GRES\n"
    )
    assert told(rows, "node", "gpus", "partitions") == [("n1", 8, "a,b")]
    assert (batch.rows_kept, batch.skipped_by_reason) == (2, {"header": 1})


def test_sinfo_without_a_header_needs_columns(read: Read) -> None:
    with pytest.raises(SourceError, match="no column of nodes"):
        read("n1|gpu:8|idle\n", "sinfo")
    _, rows = read("n1|gpu:8|idle\n", "sinfo", columns=("NodeHost", "Gres", "StateLong"))
    assert told(rows, "node", "gpus", "state") == [("n1", 8, "IDLE")]


GROUP = {
    "node": {"state": ["IDLE", "DRAIN"]}, "nodes": {"total": 2, "nodes": ["n[1-2]"]},
    "gres": {"total": "gpu:h100:8", "used": "gpu:0"}, "partition": {"name": "gpu"},
    "reason": {"description": "fan", "time": {"set": True, "infinite": False, "number": 1709280000},
               "user": "root"},
    "features": {"total": "h100", "active": ""}, "cpus": {"maximum": 192}, "memory": {"maximum": 9},
    "cluster": "alps",
}  # fmt: skip


def test_groups_of_sinfo_json_become_nodes(read: Read) -> None:
    document = {"sinfo": [GROUP, GROUP | {"nodes": {"total": 0, "nodes": []}}], "errors": []}
    batch, rows = read(json.dumps(document, indent=1))
    assert told(rows, "cluster", "node", "gpus", "state", "reason", "features") == [
        ("alps", node, 8, "IDLE+DRAIN", "fan", "h100") for node in ("n1", "n2")
    ]
    assert batch.skipped_by_reason == {"no_nodes": 1}
    assert rows[0]["reason_at"] == datetime(2024, 3, 1, 8, tzinfo=UTC)


def test_json_says_when_and_of_which_cluster_it_is(read: Read) -> None:
    node = {"name": "n1", "real_memory": 5, "gres": "", "tres": "cpu=1", "state": ["IDLE", "CLOUD"]}
    document = {
        "meta": {"slurm": {"cluster": "alps"}}, "nodes": [node, 7],
        "last_update": {"set": True, "infinite": False, "number": 1709280000},
    }  # fmt: skip
    batch, rows = read(json.dumps(document), at=None)
    when = datetime(2024, 3, 1, 8, tzinfo=UTC)
    assert told(rows, "cluster", "gpus", "state", "observed_at") == [
        ("alps", 0, "IDLE+CLOUD", when)
    ]
    assert dict(batch.rejected.by_reason) == {"no object": 1}


def test_a_document_of_many_nodes_is_never_held_whole(tmp_path: Path) -> None:
    node = {"real_memory": 5, "gres": "gpu:8", "comment": "x" * 20_000}
    nodes = [node | {"name": f"n{n}"} for n in range(500)]
    document = {"nodes": nodes, "last_update": 1709280000}
    (tmp_path / "nodes").write_text(json.dumps(document, indent=1), encoding="utf-8")
    with duckdb.cursor() as connection, opened(str(tmp_path / "nodes"), tmp_path) as source:
        tracemalloc.start()
        batch = known_readers()["scontrol-nodes"].read(source, Options(), connection)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert (batch.rows_kept, source.n_bytes > 10_000_000) == (500, True)
    assert peak < 3_000_000
    assert batch.first_at == datetime(2024, 3, 1, 8, tzinfo=UTC)  # it stands behind the nodes


def test_one_object_a_line_may_break_in_one_line(read: Read) -> None:
    lines = ['{"n": "n1", "s": "idle", "p": "a", "mem": 5}', '{"n": "n2", "s', '{"s": "idle"}']
    batch, rows = read("\n".join(lines) + "\n\n")
    assert told(rows, "node", "gpus", "memory_mb") == [("n1", None, 5)]
    assert (batch.skipped_by_reason, dict(batch.rejected.by_reason)) == (
        {"no_nodes": 1}, {"no JSON": 1},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("source", "text", "message"),
    [
        ("scontrol-nodes", '{"nodes": [{"name": "n1"', "is no whole JSON"),
        ("scontrol-nodes", '{"jobs": []}', "holds no nodes, there are: jobs"),
        ("scontrol-nodes", '{"nodes": [], "errors": [{"error": "no"}]}', "error of Slurm"),
        ("scontrol-nodes", "# none\n", "names no node"),
        ("sinfo", "\n\n", "is empty"),
        ("node-inventory", "host,gpus\nn1,8\n", "no column 'node', there are: host, gpus"),
    ],
)
def test_what_is_no_inventory_is_refused_in_one_line(
    read: Read, source: str, text: str, message: str
) -> None:
    with pytest.raises(SourceError, match=message):
        read(text, source)


def test_a_list_of_the_sites_own_may_say_when_each_row_was_so(read: Read) -> None:
    batch, rows = read(
        "node,gpus,observed_at,rack,driver\nn[1-2],8,2024-01-01,r1,550.54\nn1,4,1709280000,r1,\n"
        "n3,eight,,,\n,8,,,\nn4,,,,\n"
    )
    assert told(rows, "node", "gpus", "observed_at", "rack", "driver") == [
        ("n1", 8, datetime(2024, 1, 1, tzinfo=UTC), "r1", "550.54"),
        ("n2", 8, datetime(2024, 1, 1, tzinfo=UTC), "r1", "550.54"),
        ("n1", 4, datetime(2024, 3, 1, 8, tzinfo=UTC), "r1", None),
        ("n4", None, AT, None, None),
    ]
    assert dict(batch.rejected.by_reason) == {"gpus is no whole number": 1, "no node": 1}


def test_a_mapping_names_the_columns_of_a_list(read: Read, tmp_path: Path) -> None:
    mapping = tmp_path / "cmdb.toml"
    mapping.write_text('cluster = "hal"\ndelimiter = ";"\n[columns]\nnode = "Host"\ngpus = "#"\n')
    _, rows = read("Host;#\na;2\n", "node-inventory", mapping=str(mapping))
    assert told(rows, "cluster", "node", "gpus") == [("hal", "a", 2)]
    mapping.write_text('[columns]\nnodes = "Host"\n')
    with pytest.raises(SourceError, match=r"columns\.nodes is unknown: did you mean 'node'"):
        read("Host;#\na;2\n", "node-inventory", mapping=str(mapping))


@pytest.mark.parametrize(
    ("name", "source", "n_records", "expected"),
    [
        ("soperator/usual_node_rest.json", "scontrol-nodes", 1, {"worker-1": 1}),
        ("clockwork/small_scontrol_node", "scontrol-nodes", 1, {"test-node": 8}),
        ("clockwork/scontrol_node_2", "scontrol-nodes", 2, {"test-node": 8, "test-node-2": 8}),
        ("clockwork/scontrol_node_3", "scontrol-nodes", 5,
         {f"test-node-{n}": 8 for n in (1, 2, 3, 4, 5)}),
        ("clockwork/sinfo_1", "scontrol-nodes", 2, {"test-node-1": 1, "test-node-2": 0}),
        ("rivos/sinfo_out.json", "scontrol-nodes", 4,
         {f"cs{n}.example.company.com": 0 for n in (2, 3, 4, 5)}),
        ("rivos/sinfo_fallback.txt", "sinfo", 8,
         dict.fromkeys(("cs156", "cs25", "cs31", "cs53"))),
        ("../../slurm/gcm/sample-sinfo-output.txt", "sinfo", 4,
         {"node0201": 8, "node1537": 8, "node4180": 2}),
    ],
)  # fmt: skip
def test_published_exports_are_recognised_and_read(
    read: Read, shared_data: Path, name: str, source: str, n_records: int, expected: dict[str, Any]
) -> None:
    text = (shared_data / "collect/node_inventory" / name).read_text(encoding="utf-8")
    batch, rows = read(text)
    assert {row["source"] for row in rows} == {source}
    assert (batch.rows_read, batch.rows_kept) == (n_records, n_records)
    assert dict(told(rows, "node", "gpus")) == expected


def test_padded_columns_without_a_header_are_read_by_their_names(
    read: Read, shared_data: Path
) -> None:
    text = (shared_data / "slurm/gcm/sinfo-output-for-structured.txt").read_text(encoding="utf-8")
    columns = ("NodeHost", "Gres", "GresUsed", "CPUs", "CPUsState", "StateLong", "Partition")
    batch, rows = read(text, "sinfo", columns=columns, delimiter="|")
    assert (batch.rows_kept, {row["gpus"] for row in rows}) == (10, {8})
    assert ("node2654", "DRAINED+MAINT") in told(rows, "node", "state")


def test_jobs_queues_and_partitions_of_slurm_are_no_nodes(shared_data: Path) -> None:
    folder = shared_data / "collect/node_inventory"
    others = [folder / "soperator/2_node_job.json", folder / "rivos/squeue_out.json",
              folder / "rivos/squeue_fallback.txt", folder / "gcm_shelper/scontrol_out_multi_node.txt",
              shared_data / "slurm/gcm/sample-scontrol-output.txt"]  # fmt: skip
    for path in others:
        head = path.read_text(encoding="utf-8")[:16_384]
        found = [name for name, reader in known_readers().items() if reader.sniff(head)]
        assert not {"scontrol-nodes", "sinfo", "node-inventory"} & {*found}, path
