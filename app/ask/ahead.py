"""Results that were made before anybody asked, in files that the server's readers share.

The server names their folder in FAULTLINE_AHEAD; it is the server's own, so that nothing is read
from it that another program left there. A file's name is the key of the cache, which names the
snapshot, what people said and site.toml: what is of another time is never found.
"""

from __future__ import annotations

import os
import pickle
import tempfile
from pathlib import Path
from typing import Any

FOLDER, MAKES = "FAULTLINE_AHEAD", "FAULTLINE_AHEAD_MAKES"
"""Environment: the folder; set where this process makes what others will ask."""


def read(key: str) -> tuple[Any] | None:
    """A result in a tuple; None where it was not made, or by another version of the program."""
    folder = os.environ.get(FOLDER)
    if not folder:
        return None
    try:
        with (Path(folder) / key).open("rb") as file:
            return (pickle.load(file),)
    except (FileNotFoundError, EOFError, AttributeError, ImportError, pickle.UnpicklingError):
        return None


def kept(key: str, result: Any) -> Any:
    """The result, which stands in a file from now on where this process makes them: then as it is
    read from there, since the key of what is made of it tells copies of a text apart from one that
    is named twice."""
    folder = os.environ.get(FOLDER)
    if not folder or not os.environ.get(MAKES):
        return result
    written = pickle.dumps(result)
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".", delete=False) as file:
        file.write(written)
    Path(file.name).replace(Path(folder) / key)
    return pickle.loads(written)
