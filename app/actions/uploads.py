"""Reading an upload in a process of its own: what a person sends never unfolds in the dashboard."""

from __future__ import annotations

import json
import signal
import threading
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from data import uploads
from data.audit import login
from data.disk_full import disk_full
from data.errors import DataError
from data.ingest import IngestResult
from data.limits import MB
from data.publish import clear
from data.sandbox import Child, SaidTooMuchError, TookTooLongError, wire
from data.site import load_site

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

    from data.ingest import Options
    from data.limits import Limits

NICENESS = 5
"""Below the dashboard, above ad hoc queries."""
STOPPED_WITHIN_S = 1.0
"""Time to take back what was written; after it the process is killed."""
_STATED = (
    *("cluster", "timezone", "own_zone", "columns", "delimiter", "node", "at", "mapping"),
    *("job_id", "run_id", "partial", "boot_at", "year", "pattern", "first_lines", "last_lines"),
)
"""What a page lets a person say about a file."""
MOST_SAID = 100 * MB
"""Bytes that the process may tell: progress and one result."""


@dataclass(frozen=True)
class Upload:
    """What somebody sent: records, and what explains them where records do not."""

    name: str
    """Of the file of records, for people."""
    records: BinaryIO
    meta: BinaryIO | None = None
    """Meta file of a straggler trace."""
    mapping: BinaryIO | None = None
    """Column mapping, as TOML."""
    mapping_name: str | None = None

    @property
    def files(self) -> dict[str, BinaryIO]:
        """Name in the folder of the upload -> what it holds."""
        found = {"records": self.records, "meta.yaml": self.meta, "mapping": self.mapping}
        return {name: content for name, content in found.items() if content is not None}


class RunningUpload:
    """An upload on its way into the store.

    `options` says what the person stated; progress, limits and zones are the store's own.

    Raises
    ------
    DataError
        Where site.toml holds a mistake, or the file cannot be kept.
    """

    def __init__(
        self,
        root: Path,
        source: str,
        upload: Upload,
        options: Options,
        *,
        author: str | None = None,
    ) -> None:
        self._root, self._limits = root.resolve(), load_site(root).limits
        self.progress = "starting"
        """What it does now."""
        self._cancelled = threading.Event()
        self._ended = threading.Event()
        self._answer: list[IngestResult] | Exception | None = None
        with ExitStack() as stack:
            try:
                folder = stack.enter_context(uploads.kept(self._root, upload.files))
            except OSError as error:
                raise disk_full(error, self._root) or DataError(
                    f"{upload.name}: cannot be kept ({error.strerror}): check access"
                ) from None
            request = _request(
                self._root, source, upload, options, folder=folder, limits=self._limits
            ) | {"author": author or login()}
            self._child = Child("app.actions.upload_reader", NICENESS, shows_errors=True)
            stack.callback(self._child.end)
            kept = stack.pop_all()
        threading.Thread(target=self._run, args=(wire.line(request), kept), daemon=True).start()

    def wait(self, seconds: float) -> bool:
        """Whether it has ended, at the latest after so many seconds."""
        return self._ended.wait(seconds)

    def cancel(self) -> None:
        """Ends it; the store is as it was, unless it was published already. Waits for that."""
        self._cancelled.set()
        self._child.stop(STOPPED_WITHIN_S)
        self._ended.wait()

    def result(self) -> list[IngestResult]:
        """What became of the file, once it has ended.

        Raises
        ------
        DataError
            Where nothing could be read, a limit was reached, or it was cancelled.
        """
        self._ended.wait()
        if isinstance(self._answer, Exception):
            raise self._answer
        assert self._answer is not None  # set before the end was
        return self._answer

    def _run(self, request: bytes, kept: ExitStack) -> None:
        try:
            with kept:
                self._answer = self._asked(request)
        except Exception as error:  # noqa: BLE001  a thread's error would be lost
            self._answer = error
        finally:
            self._ended.set()

    def _asked(self, request: bytes) -> list[IngestResult]:
        """The answer of the process, which has ended then."""
        deadline = time.monotonic() + 60 * self._limits.upload_minutes
        try:
            self._child.send(request, deadline)
            last = self._followed(deadline)
            status = self._child.status(deadline)
        except TookTooLongError:
            self._child.stop(STOPPED_WITHIN_S)
            status, last = -signal.SIGALRM, {}
        except SaidTooMuchError:
            raise DataError("the upload's process told more than it may: report it") from None
        if "results" in last:
            return [IngestResult(**result) for result in last["results"]]
        self._child.kill()
        self._child.end()
        clear(self._root)
        raise self._reason(status, last)

    def _followed(self, deadline: float) -> dict[str, Any]:
        """The last line that the process told; those before are progress."""
        begun, last = b"", {}
        for chunk in self._child.chunks(MOST_SAID, deadline):
            *lines, begun = (begun + chunk).split(b"\n")
            for line in lines:
                last = json.loads(line, object_hook=wire.restore)
                self.progress = last.get("progress", self.progress)
        return last

    def _reason(self, status: int, last: dict[str, Any]) -> Exception:
        """Why the process gave no result."""
        limits = self._limits
        remedy = "raise it there, or read the file with `faultline ingest`"
        if self._cancelled.is_set():
            return DataError("the upload was cancelled: the store is as it was")
        if last.get("error"):
            return DataError(last["error"])
        if status in (-signal.SIGALRM, -signal.SIGXCPU):
            return DataError(
                f"reading took longer than {limits.upload_minutes:g} minutes, upload_minutes of "
                f"site.toml: {remedy}"
            )
        if "error" in last or status < 0:
            return DataError(
                f"reading needs more memory than {limits.upload_memory_mb:,} MB, upload_memory_mb "
                f"of site.toml: {remedy}"
            )
        return RuntimeError(f"the process of the upload ended with status {status}")


def _request(
    root: Path, source: str, upload: Upload, options: Options, *, folder: Path, limits: Limits
) -> dict[str, Any]:
    """What the process is asked."""
    stated = {name: wire.encode(getattr(options, name)) for name in _STATED}
    if upload.meta is not None:
        stated["meta"] = "meta.yaml"
    return {
        "store": str(root),
        "folder": str(folder),
        "source": source,
        "name": upload.name,
        "mapping_name": upload.mapping_name,
        "options": stated,
        "limits": asdict(limits),
    }
