"""What the ledger rests on, and that it is gone where that has changed."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

    from data.said import Said
    from data.site import Site

METHOD = 3
"""Version of the derivation; a greater one derives anew."""


def ledger_key(site: Site, said: Said) -> str:
    """What the ledger rests on beside records: method, [runs] of site.toml, causes decided."""
    names = ("said_kind", "said_key", "said_field", "said_value")
    rows = zip(*(said.parameters[name] for name in names), strict=True)
    decided = sorted((key, value) for kind, key, field, value in rows
                     if (kind, field) == ("attempt", "cause"))  # fmt: skip
    text = repr((METHOD, site.runs, decided))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def forget_ledger(connection: duckdb.DuckDBPyConnection) -> None:
    """Empties what new records make untrue."""
    for table in ("gpu_time", "job_runs"):
        connection.execute(f"DELETE FROM {table}")
