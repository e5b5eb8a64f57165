"""What a person sends is read in a process of its own, and never unfolds in the dashboard."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from data import uploads
from data.disk_full import disk_full
from data.errors import DataError
from data.limits import MB
from data.publish import clear
from data.sandbox import Child, SaidTooMuchError, TookTooLongError, wire
from data.site import load_site

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO

    from app.actions.parcel import Parcel
    from data.limits import Limits

R = TypeVar("R")

NICENESS = 5
"""Below the dashboard, above ad hoc queries."""
STOPPED_WITHIN_S = 1.0
"""Time to take back what was written; after it the process is killed."""
MOST_SAID = 32 * MB
"""Bytes that the process may tell: progress and one result."""


class Reading(Generic[R]):
    """Files that a person sent, on their way through a process that is gone afterwards.

    Parameters
    ----------
    root
        The store.
    question
        What the process is asked: `ingest`, or a name of `examining.QUESTIONS`.
    files
        Name for people -> content; of one that is not given None.
    said
        What the person stated, as `wire` holds it.
    command
        What reads such files without these limits.

    Raises
    ------
    DataError
        Where site.toml holds a mistake, or the files cannot be kept.
    """

    def __init__(
        self,
        root: Path,
        question: str,
        files: Sequence[tuple[str, BinaryIO] | None],
        said: dict[str, Any],
        *,
        parcel: Parcel,
        command: str,
    ) -> None:
        self._root, self._limits = root.resolve(), load_site(root).limits
        self._parcel, self._command = parcel, command
        self._publishes = question == "ingest"
        self.progress = "starting"
        """What it does now."""
        self._cancelled = threading.Event()
        self._ended = threading.Event()
        self._answer: tuple[R] | Exception | None = None
        # Names that stand in no file: what is told of a path is told of the name for people.
        token = token_hex(8)
        sent = {f"{token}-{n}": each for n, each in enumerate(files) if each is not None}
        with ExitStack() as stack:
            try:
                home = self._root
                if not self._publishes and not os.access(home, os.W_OK):
                    home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
                content = {path: each[1] for path, each in sent.items()}
                folder = stack.enter_context(uploads.kept(home, content))
            except OSError as error:
                name = next(iter(sent.values()))[0]
                raise disk_full(error, self._root) or DataError(
                    f"{name}: cannot be kept ({error.strerror}): check access"
                ) from None
            request = {
                "question": question,
                "store": str(self._root),
                "folder": str(folder),
                "files": [None if each is None else f"{token}-{n}" for n, each in enumerate(files)],
                "called": {path: _sound(each[0]) for path, each in sent.items()},
                "said": said,
                "limits": vars(self._limits),
            }
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

    def result(self) -> R:
        """What came of the files, once it has ended.

        Raises
        ------
        DataError
            Where nothing could be read, a limit was reached, or it was cancelled.
        """
        self._ended.wait()
        if isinstance(self._answer, Exception):
            raise self._answer
        assert self._answer is not None  # set before the end was
        return self._answer[0]

    def _run(self, request: bytes, kept: ExitStack) -> None:
        try:
            with kept:
                self._answer = (self._asked(request),)
        except Exception as error:  # noqa: BLE001  a thread's error would be lost
            self._answer = error
        finally:
            self._ended.set()

    def _asked(self, request: bytes) -> R:
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
            raise DataError(
                f"what was found in it is larger than {MOST_SAID / MB:g} MB: read the file with "
                f"`{self._command}`"
            ) from None
        if "result" in last:
            found: R = last["result"]
            return found
        self._child.kill()
        self._child.end()
        if self._publishes:
            clear(self._root)
        raise self._reason(status, last)

    def _followed(self, deadline: float) -> dict[str, Any]:
        """The last line that the process told; those before are progress."""
        begun: list[bytes] = []
        last: dict[str, Any] = {}
        for chunk in self._child.chunks(MOST_SAID, deadline):
            *ended, rest = chunk.split(b"\n")
            for end in ended:
                last = json.loads(b"".join([*begun, end]), object_hook=self._parcel.restore)
                begun = []
                self.progress = last.get("progress", self.progress)
            begun.append(rest)
        return last

    def _reason(self, status: int, last: dict[str, Any]) -> Exception:
        """Why the process gave no result."""
        limits: Limits = self._limits
        remedy = f"raise it there, or read the file with `{self._command}`"
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


def _sound(name: str) -> str:
    """A name that can be written; a browser may send half a character."""
    return name.encode("utf-8", "replace").decode()
