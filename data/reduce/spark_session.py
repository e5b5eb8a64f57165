"""A session of Spark on a master that runs, or in this process; its cluster is the site's."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import threading
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from data.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Collection

WAIT_S = 10.0
"""How long a master may take to answer."""
_LOCAL = "local[*]"


def spark_session(name: str, zone: str, master: str | None) -> Any:
    """A session by the name of its application; `master` None is Spark in this process.

    Raises
    ------
    DataError
        Where there is no Spark, no Java, or nothing answers.
    """
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        raise DataError("no Java, which Spark runs on: install a Java runtime, e.g. openjdk 17")
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise DataError("no Spark: pip install -e .[spark]") from None
    _refuse_silent(master)
    building = SparkSession.builder.appName(name).master(master or _LOCAL)
    for setting, value in {
        "spark.sql.session.timeZone": zone,
        "spark.sql.legacy.parquet.nanosAsLong": "true",
        "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",  # as `app.cli` has it: sums come out alike
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }.items():
        building = building.config(setting, value)
    handled = signal.getsignal(signal.SIGINT)
    try:
        session = building.getOrCreate()
    except spark_errors() as error:
        raise DataError(
            f"Spark did not start ({reason_of(error)}): check --master and Java"
        ) from None
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, handled)  # Spark's own would end the command as a bug does
    session.sparkContext.setLogLevel("ERROR")
    return session


@cache
def spark_errors() -> tuple[type[Exception], ...]:
    """What Spark and its Java raise where files, workers or settings are at fault."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return (Py4JError, PySparkException, OSError)


def reason_of(error: Exception) -> str:
    """The line that says what was wrong; Java's stands below one that names the call.

    >>> reason_of(OSError("An error occurred while calling o1.x.\\n: java.lang.Exception: no room"))
    'java.lang.Exception: no room'
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    told = lines[1] if len(lines) > 1 and lines[1].startswith(":") else lines[0]
    return told.removeprefix(": ")[:200]


def refuse_unconnected(session: Any, schemes: Collection[str]) -> None:
    """Refuses addresses of which Spark has no connector.

    Raises
    ------
    DataError
        Where there is none.
    """
    context = session.sparkContext
    for scheme in schemes:
        try:
            context._jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(
                scheme, context._jsc.hadoopConfiguration()
            )
        except spark_errors():
            raise DataError(
                f"Spark has no connector of {scheme}://: add the one of its Hadoop (for S3 "
                "hadoop-aws, by spark.jars.packages), or leave --engine spark out: DuckDB needs "
                "none"
            ) from None


def failed(error: Exception) -> DataError:
    """What to say where a reduction ended for want of Spark."""
    return DataError(
        f"Spark failed ({reason_of(error)}): see that its workers live and have room; days that "
        "are done stay, run it again"
    )


def _refuse_silent(master: str | None) -> None:
    """Refuses a standalone master that does not answer, which Spark would try for a minute."""
    if master is None or not master.startswith("spark://"):
        return
    addresses = [urlsplit(f"spark://{each}") for each in master[len("spark://") :].split(",")]
    for address in addresses:
        try:
            with socket.create_connection((address.hostname or "", address.port or 7077), WAIT_S):
                return
        except (OSError, ValueError):
            continue
    raise DataError(f"{master}: no master answers there: check the address, and that it runs")
