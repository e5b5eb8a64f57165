"""Readers in families, by what they read: each module with a READER is a source."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from data.ingest.reader import Reader


@cache
def known_readers() -> dict[str, Reader]:
    """Source name -> its reader, in the order of their places."""
    modules = (import_module(info.name) for info in walk_packages(__path__, f"{__name__}."))
    readers: list[Reader] = [module.READER for module in modules if hasattr(module, "READER")]
    readers.sort(key=lambda reader: (reader.place, reader.name))
    return {reader.name: reader for reader in readers}


def known_by() -> dict[str, tuple[str, ...]]:
    """Option -> the sources to which it says something."""
    readers = known_readers().values()
    options = dict.fromkeys(option for reader in readers for option in reader.options)
    return {
        option: tuple(reader.name for reader in readers if option in reader.options)
        for option in options
    }
