"""Landlock: by it a process gives up files by path, TCP and signals, where the kernel has it."""

import ctypes
import os
import struct
import sys

_CREATE_RULESET, _RESTRICT_SELF = 444, 446  # the same on every architecture
_VERSION = 1
_NO_NEW_PRIVILEGES = 38  # prctl
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
"""Rights over files that each version of the interface knows; later ones know 16."""
_ALL_OF_TWO = 0b11
"""Of the network to bind and connect TCP, of scopes abstract sockets and signals."""

_MISSING = (
    "This system has no Landlock, the last of the guards around ad hoc SQL: the others still keep "
    "it from files and network. Linux 5.13 and later has it, unless the kernel was started, or a "
    "container is run, without."
)


def missing() -> str | None:
    """What people are told where this process is not offered it; None where it is."""
    return None if _version() >= 1 else _MISSING


def reach_nothing() -> bool:
    """Takes from this thread, and all it starts from now on, files by path, TCP and signals.

    What is open stays open. Returns whether it holds.

    References
    ----------
    Linux, Documentation/userspace-api/landlock.rst.
    """
    version = _version()
    if version < 1:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    taken = [(1 << _FILE_RIGHTS.get(version, 16)) - 1]
    taken += [_ALL_OF_TWO] * ((version >= 4) + (version >= 6))
    asked = struct.pack(f"{len(taken)}Q", *taken)
    rules = libc.syscall(_CREATE_RULESET, asked, ctypes.c_size_t(len(asked)), ctypes.c_uint32(0))
    if rules < 0:
        return False
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    held = libc.syscall(_RESTRICT_SELF, rules, ctypes.c_uint32(0)) == 0
    os.close(rules)
    return bool(held)


def _version() -> int:
    """Version of the interface; below 1 where there is none."""
    if sys.platform != "linux":
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    size, asked = ctypes.c_size_t(0), ctypes.c_uint32(_VERSION)
    return int(libc.syscall(_CREATE_RULESET, None, size, asked))
