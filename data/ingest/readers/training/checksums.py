"""Which logged series are checksums: they are compared letter by letter, and are never numbers."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

LONGEST: Final = 128
"""Characters; of a longer text its MD5 is kept, which is equal where the texts are."""
WORDS: Final = frozenset(
    ("checksum", "hash", "digest", "crc", "crc32", "md5", "sha1", "sha256", "fingerprint")
)
_WORD: Final = re.compile(r"[a-z]+\d*")


@lru_cache(maxsize=4096)
def is_checksum(name: str) -> bool:
    """Whether the name of a series says that it is a checksum, by one of its words.

    >>> is_checksum("params/sha256"), is_checksum("weightHash"), is_checksum("hashes_per_s")
    (True, True, False)
    """
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
    return not WORDS.isdisjoint(_WORD.findall(apart))
