"""Errors of files, the store and its configuration: each says where, what and what to do."""


class DataError(Exception):
    """A file, the store or the configuration is at fault; the message is one line."""


class SourceError(DataError):
    """A source file cannot be read at all: nothing was stored."""


class EmptySourceError(SourceError):
    """A source file is there and holds nothing, as that of a quiet source does."""


class StoreError(DataError):
    """The store is absent, newer than this version, or unreadable."""


class StoreBusyError(StoreError):
    """Another process is writing to the store."""


class SiteError(DataError):
    """site.toml holds a mistake."""


class QueryError(DataError):
    """An ad hoc query was refused, failed or outran its limits.

    `place` is where in its text, counted from 1: line, column, length; None where none is known.
    """

    def __init__(self, message: str, place: tuple[int, int, int] | None = None) -> None:
        super().__init__(message)
        self.place = place
