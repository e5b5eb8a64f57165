"""The sections [cluster.<name>]: what a site states about its clusters."""

from __future__ import annotations

import math
import zoneinfo
from dataclasses import dataclass
from typing import TYPE_CHECKING

from data.errors import SiteError
from data.site.document import known_keys, nearest, table

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class ClusterSite:
    """What a site states about one cluster; None where it states nothing."""

    gpus_per_node: int | None = None
    gpu_model: str | None = None
    timezone: str | None = None
    """IANA zone of the local times in the cluster's sources."""
    scheduler: str | None = None
    gpu_hour_price: float | None = None
    currency: str | None = None


def read(path: Path, name: str, values: object) -> ClusterSite:
    """One [cluster.<name>]."""
    place = f"cluster.{name}"
    stated = table(path, place, values)
    known_keys(path, place, stated, ClusterSite)
    for key, kind, rule in (
        ("gpus_per_node", int, "a whole number > 0, e.g. 8"),
        ("gpu_hour_price", (int, float), "a number > 0, e.g. 2.5"),
    ):
        value = stated.get(key)
        if value is not None and (
            not isinstance(value, kind) or value is True or not 0 < value < math.inf
        ):
            raise SiteError(f"{path}: {place}.{key} must be {rule}, got {value!r}: mend it")
    for key in ("gpu_model", "timezone", "scheduler", "currency"):
        if not isinstance(stated.get(key, ""), str):
            raise SiteError(f"{path}: {place}.{key} must be text, got {stated[key]!r}: quote it")
    zone = stated.get("timezone")
    if zone is not None and zone not in zoneinfo.available_timezones():
        raise SiteError(
            f"{path}: {place}.timezone must be an IANA zone, got {zone!r}: "
            + nearest(zone, tuple(zoneinfo.available_timezones()), example="Europe/Berlin")
        )
    return ClusterSite(**stated)
