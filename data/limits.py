"""Limits on what is read: of a line, a record and an archive; of the process that reads uploads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MB: Final = 1_000_000


@dataclass(frozen=True)
class Limits:
    """What a site allows its inputs; section [limits] of site.toml, MB and GB of 10^6 and 10^9."""

    line_mb: float = 10.0
    """A line; a longer one is a rejected record. Logs of jobs keep the end of a line anyway."""
    fields: int = 4_096
    """Fields of a record; one of more is rejected, a header of more is refused."""
    json_depth: int = 64
    """Brackets around a value of JSON; a record of more is rejected."""
    unpacked_gb: float = 20.0
    """What an archive unfolds to: ten years of accounting of a large cluster. More is refused."""
    unpacked_ratio: float = 200.0
    """Unpacked to packed bytes: logs have 5 to 30, seldom 100, bombs 1,000. More is refused."""
    upload_memory_mb: int = 4_096
    """Address space of the process that reads an upload."""
    upload_minutes: float = 15.0
    """How long that process may take, the publish included."""
    upload_file_gb: float = 40.0
    """Each file that it writes: the unpacked upload, the snapshot."""

    @property
    def line_bytes(self) -> int:
        """The longest line."""
        return int(self.line_mb * MB)

    @property
    def line_reason(self) -> str:
        """Why a longer line is rejected."""
        return f"line longer than the limit of {self.line_mb:g} MB"

    @property
    def fields_reason(self) -> str:
        """Why a record of more fields is rejected."""
        return f"more fields than the limit of {self.fields:,}"

    @property
    def depth_reason(self) -> str:
        """Why a record of more brackets is rejected."""
        return f"JSON deeper than the limit of {self.json_depth:,}"


DEFAULTS: Final = Limits()
"""Where no site says anything else."""

RANGES: Final[dict[str, tuple[float, float]]] = {
    "line_mb": (0.001, 1_000),
    "fields": (16, 100_000),
    "json_depth": (4, 500),
    "unpacked_gb": (0.001, 10_000),
    "unpacked_ratio": (2, 1_000_000),
    "upload_memory_mb": (1_000, 1_000_000),
    "upload_minutes": (0.05, 1_440),
    "upload_file_gb": (0.01, 10_000),
}
"""Limit -> the least and the most that a site may set it to."""
