"""The process that reads what a person sent: bounded, told to stop, and gone afterwards."""

from __future__ import annotations

import _thread
import contextlib
import errno
import json
import os
import resource
import signal
import sys
import threading
import traceback
from pathlib import Path
from typing import Any, NoReturn

from analytics.errors import AnalysisError
from app.actions.examining import QUESTIONS
from app.actions.parcel import Parcel
from app.actions.records import ingest_files
from data.disk_full import disk_full
from data.errors import DataError
from data.ingest import IngestResult, Options
from data.ingest.reader import MappingFile
from data.limits import MB, Limits
from data.sandbox import confine, die_first, wire

PROCESSORS = 4
"""Most that it uses: DuckDB starts as many threads, each of which reserves address space."""
GRACE_S = 5.0
"""Beyond its time, in which the dashboard has ended it already, if that still runs."""


def answer() -> NoReturn:
    """Reads a request from standard input; writes progress, then results or why there are none."""
    asked = sys.stdin.buffer.readline()
    if not asked.endswith(b"\n"):  # whoever started this process is gone
        os._exit(0)
    request = json.loads(asked, object_hook=wire.restore)
    limits = Limits(**request["limits"])
    die_first()
    with contextlib.suppress(AttributeError):  # not Linux
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-PROCESSORS:])
    # What Python takes as an interrupt takes back what was written; SIGALRM needs no Python.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 60 * limits.upload_minutes + GRACE_S)
    threading.Thread(target=_end_with_the_dashboard, daemon=True).start()
    confine(
        {
            resource.RLIMIT_AS: int(limits.upload_memory_mb * MB),
            resource.RLIMIT_CPU: int(2 * 60 * limits.upload_minutes) + 1,
            resource.RLIMIT_FSIZE: int(limits.upload_file_gb * 1e9),
            resource.RLIMIT_CORE: 0,
        }
    )
    os.chdir(request["folder"])  # what is told of files names no path of the server
    said = _Said(request["called"])
    try:
        said.line({"result": _read(request, limits, said)})
    except (DataError, AnalysisError) as error:
        too_large = isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EFBIG
        said.line({"error": _too_large(limits) if too_large else str(error)})
    except OSError as error:
        said.line({"error": _told(error, limits)})
    except MemoryError:
        said.line({"error": None})
    except KeyboardInterrupt:
        os._exit(128 + signal.SIGTERM)
    except Exception:  # noqa: BLE001  a bug: the server's log has it
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


def _told(error: OSError, limits: Limits) -> str:
    """What the system refused."""
    if error.errno == errno.EFBIG:
        return _too_large(limits)
    return str(disk_full(error) or f"reading was stopped ({error.strerror}): check access")


def _too_large(limits: Limits) -> str:
    return (
        f"reading needs a file larger than {limits.upload_file_gb:g} GB, upload_file_gb of "
        "site.toml: raise it there, or read the file with `faultline ingest`"
    )


def _end_with_the_dashboard() -> None:
    """Interrupts the reading once nobody holds the other end of standard input any more."""
    sys.stdin.buffer.read()
    _thread.interrupt_main()


class _Said:
    """What is told to the dashboard, line by line; of files by their names for people."""

    def __init__(self, called: dict[str, str]) -> None:
        # Within a text of JSON; no path of ours stands anywhere else, for it was drawn by chance.
        self._called = {
            path: json.dumps(name, ensure_ascii=False)[1:-1] for path, name in called.items()
        }
        self._out = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)  # nothing but this reaches the dashboard

    def line(self, told: dict[str, Any]) -> None:
        """Writes a line."""
        line = wire.line(told)
        for path, name in self._called.items():
            line = line.replace(path.encode(), name.encode())
        self._out.write(line)
        self._out.flush()

    def progress(self, text: str) -> None:
        """Writes a line of progress."""
        self.line({"progress": text})


def _read(request: dict[str, Any], limits: Limits, said: _Said) -> Any:
    """What became of the files, or what they show."""
    if request["question"] != "ingest":
        question = QUESTIONS[request["question"]]
        return question.parcel().packed(question.ask(request["files"], limits, **request["said"]))
    (records, meta, mapping), stated = request["files"], request["said"]["options"]
    if mapping is not None:
        name = request["called"][mapping]
        stated["mapping"] = MappingFile(name, Path(mapping).read_bytes())
    results, _ = ingest_files(
        Path(request["store"]),
        request["said"]["source"],
        [records],
        Options(**stated, meta=meta, progress=said.progress),
        called={records: request["called"][records]},
        author=request["said"]["author"],
    )
    return Parcel(IngestResult).packed(results)
