"""What one ad hoc query may take."""

from dataclasses import dataclass


@dataclass(frozen=True)
class QueryLimits:
    """Limits of one ad hoc query; nothing of it ever spills to a disk."""

    wall_seconds: float = 20.0
    cpu_seconds: int = 20
    memory_mb: int = 1024
    """DuckDB's own limit: sorts, joins and aggregates end with a clear error."""
    address_space_mb: int = 3072
    """The system's limit, for the allocations that DuckDB's own does not count."""
    max_rows: int = 10_000
    max_bytes: int = 32 * 2**20
    """Size of the encoded rows; further rows are left out."""
    max_sql_bytes: int = 100_000
