"""Who acts, where nobody says it."""

from __future__ import annotations

import getpass
import os


def login() -> str:
    """The user who runs this process; by number where the system knows no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without an entry in passwd
        return f"uid {os.getuid()}"
