"""Looking for a faulty machine in files that a person sent: in a process of its own, bounded."""

from __future__ import annotations

import pickle
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from analytics.errors import AnalysisError
from data.errors import DataError
from data.limits import DEFAULTS, MB
from data.sandbox import confine

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import BinaryIO

    from app.answers.nodes.machines import Examined

SECONDS = 120
"""Time that reading and judging may take."""
TOO_LARGE = "reading needed more memory than an upload may: use `faultline machines FILE`"
_CHILD = "from app.actions.machines import answer; answer()"


def examine_machines(files: Mapping[str, BinaryIO]) -> Examined:
    """Is a machine faulty by the metrics in these uploads, by name?

    Raises
    ------
    DataError
        Where they cannot be read or judged.
    """
    with TemporaryDirectory(prefix="faultline-machines-") as folder:
        paths = []
        for number, (name, content) in enumerate(files.items()):
            path = Path(folder, str(number), Path(name).name or "upload")
            path.parent.mkdir()
            with path.open("wb") as copy:
                shutil.copyfileobj(content, copy)
            paths.append(str(path))
        try:
            child = subprocess.run(
                [sys.executable, "-c", _CHILD, *paths],
                capture_output=True, timeout=SECONDS, check=True, cwd=Path(__file__).parents[2],
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise DataError(
                f"reading took more than {SECONDS} s: use `faultline machines FILE`"
            ) from None
        except subprocess.CalledProcessError as error:
            if error.returncode > 0:  # a bug: the server's log has it
                sys.stderr.buffer.write(error.stderr)
                raise
            raise DataError(TOO_LARGE) from None  # the system ended it
        found: Any = pickle.loads(child.stdout)
        if isinstance(found, str):
            for given in paths:
                found = found.replace(given, Path(given).name)
            raise DataError(found)
    examined: Examined = found
    return examined


def answer() -> None:
    """The child: writes what the files show, or why nobody can say."""
    confine(
        {
            resource.RLIMIT_AS: int(DEFAULTS.upload_memory_mb * MB),
            resource.RLIMIT_CPU: 2 * SECONDS,
            resource.RLIMIT_CORE: 0,
        }
    )
    from app.answers.nodes import machines

    try:
        found: Examined | str = machines.examined(sys.argv[1:])
    except (DataError, AnalysisError) as error:
        found = str(error)
    except MemoryError:
        found = TOO_LARGE
    sys.stdout.buffer.write(pickle.dumps(found))
