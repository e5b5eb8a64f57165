"""Landlock: the kernel takes every file from this process, and signals to others."""

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


def reach_nothing() -> bool:
    """Takes from this thread, and all it starts from now on, files by path, TCP and signals.

    What is open stays open. Returns whether the kernel offers it (Linux 5.13 and later, unless it
    was built or started without).

    References
    ----------
    Linux, Documentation/userspace-api/landlock.rst.
    """
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    if version < 1:
        return False
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
