"""Which columns of accounting are read and written: texts, in the words of sacct."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

WRITTEN = (
    "jobid", "jobidraw", "sluid", "originalsluid", "cluster", "user", "account", "partition", "qos",
    "jobname", "state", "exitcode", "reason", "failednode", "restarts", "submit", "eligible",
    "start", "end", "elapsedraw", "elapsed", "timelimitraw", "timelimit", "nnodes", "ncpus",
    "alloctres", "nodelist", "flags", "submitline", "priority",
)  # fmt: skip
"""All that a store takes of a record."""
_ELSE = {
    "jobid": "jobidraw", "restarts": "restartcnt", "nnodes": "allocnodes", "ncpus": "alloccpus",
}  # fmt: skip
"""Column -> the one that is read where a file has none such."""
READ = frozenset((*WRITTEN, *_ELSE.values()))


def known_columns(name: str, columns: Iterable[str]) -> dict[str, str]:
    """Column of sacct in lower case -> as the partition calls it; of two of a name the first.

    Raises
    ------
    SourceError
        Where it has no JobID or no State.

    Examples
    --------
    >>> known_columns("a.parquet", ["JobID", "State", "Comment"])
    {'jobid': 'JobID', 'state': 'State'}
    """
    there = list(columns)
    found = {
        plain: column
        for column in reversed(there)
        if (plain := column.strip(" \t\ufeff").lower()) in READ
    }
    for needed, names in (("JobID", ("jobid", "jobidraw")), ("State", ("state",))):
        if not any(name in found for name in names):
            told = ", ".join(there)[:200] or "none"
            raise SourceError(
                f"{name}: column {needed} is missing (found {told}): "
                "give records with the columns of sacct"
            )
    return {plain: found[plain] for plain in sorted(found)}


def written_as(texts: Mapping[str, str]) -> dict[str, str]:
    """Column that is written -> expression of its text, by those of the columns that are there.

    Examples
    --------
    >>> found = written_as({"jobidraw": '"JobIDRaw"', "state": '"State"'})
    >>> found["jobid"], found["jobidraw"], found["user"]
    ('"JobIDRaw"', '"JobIDRaw"', "''")
    """
    return {
        name: texts.get(name, texts.get(_ELSE.get(name, name), "''")) for name in WRITTEN
    }  # fmt: skip
