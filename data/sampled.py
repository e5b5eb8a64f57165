"""A snapshot's file, told from any other one by a little of it, in less than a millisecond.

DuckDB writes a file as three headers and then blocks, each behind a checksum of its own, which it
looks at when it reads the block. So the headers, some of those checksums, the end and the size tell
whether it is the file that was published; what is wrong within a block DuckDB tells itself.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from data.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from data.current import Current

HEADERS = 3 * 4096
"""Bytes before the first block."""
BLOCK = 1 << 18
CHECKSUM = 8
"""Bytes with which each block begins."""
END = 4096
BLOCKS_LOOKED_AT = 64


def sampled(path: Path) -> tuple[int, str]:
    """Bytes of a snapshot's file, and the SHA-256 of its sample."""
    with path.open("rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        digest = hashlib.sha256(os.pread(file.fileno(), HEADERS, 0))
        n_blocks = (size - HEADERS) // BLOCK
        places: Sequence[int] = range(n_blocks)  # all of a small file, else evenly spread
        if n_blocks > BLOCKS_LOOKED_AT:
            spaces = BLOCKS_LOOKED_AT - 1
            places = [n * (n_blocks - 1) // spaces for n in range(BLOCKS_LOOKED_AT)]
        for block in places:
            digest.update(os.pread(file.fileno(), CHECKSUM, HEADERS + block * BLOCK))
        digest.update(os.pread(file.fileno(), END, max(0, size - END)))
    return size, digest.hexdigest()


def refuse_another(root: Path, current: Current) -> None:
    """Refuses a snapshot whose file is another one than was published.

    Of what a version published that noted no sample, nothing is known until the next publish.

    Raises
    ------
    StoreError
        Where size or sample are not those that CURRENT states, or the file is gone.
    """
    if not current.sample:
        return
    path = root / current.file
    try:
        found = sampled(path)
    except FileNotFoundError:
        raise StoreError(f"{path}: is missing: restore it from a backup") from None
    except OSError as error:
        raise StoreError(f"{path}: cannot be read ({error.strerror}): check access") from None
    if found != (current.size, current.sample):
        from data.current import damaged

        raise damaged(path, "it is not the file that CURRENT says was published")
