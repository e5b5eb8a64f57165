"""Pieces of work that know nothing of each other, on Spark: a task each.

The product's own code travels to the workers as an archive, so that they run this version whatever
is installed there; the libraries that it needs do not.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar
from zipfile import ZIP_DEFLATED, ZipFile

from data.errors import DataError
from data.reduce.spark_session import WAIT_S, reason_of, spark_errors, spark_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Notice = Callable[[str], None]

Item = TypeVar("Item")
Result = TypeVar("Result")
_ARCHIVE = "faultline.zip"
_PACKAGES = ("analytics", "app", "data")
_KINDS = {".csv", ".json", ".py", ".sql", ".toml"}
"""Files of the product that an analysis may read."""
_UNFIT = re.compile(
    r"No module named '[^']*'|Python in worker has different version: [^,]*"
    r"|Cannot run program \"[^\"]*\""
)
"""How a worker says that its Python cannot run the product."""
_RAISED = "PythonException: Traceback"
"""How Spark says that the function itself raised."""


class Task(NamedTuple, Generic[Item]):
    """What a function is given, and the files that it will read."""

    item: Item
    files: tuple[str, ...]


class Unreached(NamedTuple):
    """A file that a worker cannot read."""

    host: str
    path: str


def mapped(
    function: Callable[[Item], Result],
    tasks: Sequence[Task[Item]],
    master: str | None,
    notice: Notice,
) -> list[Result | Unreached]:
    """What a function of a module returns of each item, in their order.

    Relative paths mean what they mean here. A task whose worker dies runs again elsewhere.

    Raises
    ------
    DataError
        Where there is no Spark, no Java or no master, or the workers cannot run the function.
    """
    session = spark_session("faultline", "UTC", master)
    try:
        with TemporaryDirectory() as folder:
            context = session.sparkContext
            context.pythonExec = os.environ.get("PYSPARK_PYTHON") or sys.executable
            context.addFile(str(packed(Path(folder))))
            sent, there = _packed_for(partial(called, function, str(Path.cwd())), tasks)
            with _told_of_waiting(context, master, notice):
                return list(context.parallelize(sent, len(sent)).map(there).collect())
    except spark_errors() as error:
        raise refusal(error) from error
    finally:
        session.stop()


def _packed_for(
    function: Callable[[Task[Item]], Result], tasks: Sequence[Task[Item]]
) -> tuple[list[bytes], Callable[[bytes], Result]]:
    """Tasks and function for workers, who know nothing of the product until they open its archive.

    Spark's own way, `addPyFile`, names the archive relative to a folder in which no function may
    then look for files of relative paths.
    """
    from pyspark.serializers import CPickleSerializer

    serializer: Any = CPickleSerializer  # untyped
    pack = serializer().dumps
    packed_function = pack(function)

    def there(task: bytes) -> Any:  # sent whole, as is all that no module holds
        import os
        import sys

        from pyspark import SparkFiles
        from pyspark.serializers import CPickleSerializer

        serializer: Any = CPickleSerializer
        files: Any = SparkFiles
        archive = os.path.abspath(files.get("faultline.zip"))  # noqa: PTH100 - no globals
        if archive not in sys.path:
            sys.path.insert(0, archive)
        unpack = serializer().loads
        return unpack(packed_function)(unpack(task))

    return [pack(task) for task in tasks], there


def packed(folder: Path) -> Path:
    """The product's own code as an archive from which Python imports."""
    root = Path(__file__).resolve().parents[2]
    path = folder / _ARCHIVE
    with ZipFile(path, "w", ZIP_DEFLATED, strict_timestamps=False) as archive:
        for package in _PACKAGES:
            for file in sorted((root / package).rglob("*")):
                if file.suffix in _KINDS:
                    archive.write(file, file.relative_to(root))
    return path


def called(function: Callable[[Item], Result], folder: str, task: Task[Item]) -> Result | Unreached:
    """What a worker does: the function, called where the command was."""
    for path in task.files:
        if not os.access(Path(folder) / path, os.R_OK):
            return Unreached(socket.gethostname(), path)
    absolute = all(Path(path).is_absolute() for path in task.files)
    with contextlib.nullcontext() if absolute else contextlib.chdir(folder):
        return function(task.item)


@contextlib.contextmanager
def _told_of_waiting(context: Any, master: str | None, notice: Notice) -> Iterator[None]:
    """Says so where no worker takes the work, for which Spark would wait without a word."""

    def tell() -> None:
        if len(context._jsc.sc().statusTracker().getExecutorInfos()) < 2:  # this process is one
            notice(f"{master}: no worker takes the work yet: see that some run and are free")

    if master is None or master.startswith("local"):
        yield
        return
    waiting = Timer(WAIT_S, tell)
    waiting.start()
    try:
        yield
    finally:
        waiting.cancel()


def refusal(error: Exception) -> Exception:
    """What to say of an error of Spark; one of the function itself stays what it is."""
    text = str(error)
    if (unfit := _UNFIT.search(text)) is not None:
        return DataError(
            f"a worker of Spark cannot run Faultline ({unfit[0]}): install requirements.lock for "
            "the same Python there, and name that Python by PYSPARK_PYTHON"
        )
    if _RAISED in text:
        return error
    return DataError(
        f"Spark failed ({reason_of(error)}): see that its workers live and have room, run it again"
    )
