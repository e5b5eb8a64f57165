"""Every command on the demo as JSON and as CSV: what is kept of them, and how it is made.

`python -m tests.app.cli.golden STORE FOLDER` writes what each prints into a folder, so that two
states of the program can be compared to the digit, and writes `kept/`, to which `test_golden` holds
them. A new command adds a file there with its lines, `{"NAME --option": {"of": "demo"}}`.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from app.cli import main

LIVES = Path(__file__).resolve().parents[2] / "references" / "lives.csv"
KEPT = Path(__file__).with_name("kept")
"""A file a command: its lines, each with the keys of its JSON and the header of its CSV, and
whether it is asked of the demo's store or of files."""
DELAYS = [
    f"n{a},n{b},{0 if a == b else 40 if a == 3 else 20 + a * b % 2}"
    for a in range(1, 7)
    for b in range(1, 7)
]
SAMPLES = [
    f"{second},gpu-{node},{500 + 7 * ((second * 31 + node * 17) % 13) - (node == 7 and second > 200) * 150}"
    for second in range(600)
    for node in range(16)
]
RESULTS = [
    json.dumps({"node": f"n{node}", "gemm-flops/fp16": 900.0 + node % 7 - (node == 4) * 300})
    for node in range(24)
]
KERNEL = [
    "Jan  5 10:00:00 n1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus",
    "Jan  5 10:00:01 n1 kernel: NVRM: Xid (PCI:0000:3b:00): 13, pid=2, Graphics Exception",
]


def _words(store: Path, folder: Path) -> dict[str, str]:
    """What stands in the commands, files written to a folder among it."""
    files = {
        "log": ["step 1", "RuntimeError: CUDA error: uncorrectable ECC error encountered"],
        "delays": ["source,destination,delay_us", *DELAYS],
        "samples": ["at,node,power", *SAMPLES],
        "results": RESULTS,
        "kernel": KERNEL,
    }
    endings = {"delays": ".csv", "samples": ".csv", "results": ".jsonl"}
    words = {}
    for name, lines in files.items():
        path = folder / f"{name}{endings.get(name, '.txt')}"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        words[name] = str(path)
    words["dumps"] = str(hung_dumps(folder / "dumps"))
    traces = sorted((store / "metrics" / "straggler_traces").glob("*.parquet"))
    return words | {
        "lives": str(LIVES),
        "trace": str(traces[0]),
        "run": json.loads(said("ettr", "--store", str(store), "--format", "json"))["by_run"][0][
            "run_id"
        ],
        "user": _first(store, "SELECT user FROM jobs GROUP BY ALL ORDER BY count(*) DESC LIMIT 1"),
        "node": _first(store, "SELECT min(node) FROM nodes"),
        "query": "SELECT * FROM failures ORDER BY ALL LIMIT 5",
    }


def hung_dumps(folder: Path) -> Path:
    """Dumps of three ranks, of which one never joined."""
    folder.mkdir()
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2]"}}
    for rank in range(3):
        entry = {
            "record_id": 0,
            "pg_id": 0,
            "process_group": ["0", "default_pg"],
            "collective_seq_id": 1,
            "is_p2p": False,
            "profiling_name": "nccl:all_reduce",
            "state": "started",
        }
        dump = {"version": "2.9", "pg_config": config, "entries": [entry] * (rank != 1)}
        (folder / f"_dump_{rank}").write_text(json.dumps(dump), encoding="utf-8")
        stack = f'Process 1: python\nPython v3.11\n\nThread 1 (idle): "MainThread"\n    f{rank} (a.py:1)\n'
        (folder / f"stack_{rank}").write_text(stack, encoding="utf-8")
    return folder


def _first(store: Path, query: str) -> str:
    """The first value of an answer."""
    (row,) = json.loads(said("sql", query, "--store", str(store), "--format", "json"))
    (value,) = row.values()
    return str(value)


def said(*arguments: str) -> str:
    """What a command prints on standard output."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()) as err:
        code = main(list(arguments))
    if code:
        raise AssertionError(f"{arguments}: {err.getvalue()}")
    return out.getvalue()


def kept() -> dict[str, dict[str, Any]]:
    """Line of a command -> what is kept of it."""
    files = (json.loads(path.read_text("utf-8")) for path in sorted(KEPT.glob("*.json")))
    return {line: said for entries in files for line, said in entries.items()}


def lines(store: Path, folder: Path) -> dict[str, list[str]]:
    """Line of a command -> its arguments, for the demo in a store."""
    words, of_store = _words(store, folder), ["--store", str(store)]
    return {
        line: [word.format(**words) for word in line.split(" ")]
        + (of_store if said["of"] == "demo" else [])
        for line, said in kept().items()
    }


def keys(value: Any, place: str = "") -> set[str]:
    """Paths of all keys in a JSON document; of lists those of all their items."""
    if isinstance(value, dict):
        return {f"{place}.{key}" for key in value}.union(
            *(keys(each, f"{place}.{key}") for key, each in value.items())
        )
    if isinstance(value, list):
        return set().union(*(keys(each, f"{place}[]") for each in value))
    return set()


def golden(arguments: list[str]) -> dict[str, Any]:
    """Keys of a command's JSON and the header of its CSV."""
    record = json.loads(said(*arguments, "--format", "json"))
    header = said(*arguments, "--format", "csv").partition("\n")[0]
    return {"json": sorted(keys(record)), "csv": header.strip()}


def main_of(store: Path, folder: Path) -> None:
    """Writes what each command prints, and anew what is kept of it."""
    with tempfile.TemporaryDirectory() as place:
        commands = lines(store, Path(place))
        for line, arguments in commands.items():
            for form in ("json", "csv"):
                name = "".join(c if c.isalnum() else "_" for c in line)
                text = said(*arguments, "--format", form).replace(place, "FILES")
                (folder / f"{name}.{form}").write_text(text.replace(str(store), "STORE"))
        for path in sorted(KEPT.glob("*.json")):
            of = {line: said["of"] for line, said in json.loads(path.read_text("utf-8")).items()}
            entries = {line: {"of": of[line]} | golden(commands[line]) for line in of}
            path.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main_of(Path(sys.argv[1]), Path(sys.argv[2]))
