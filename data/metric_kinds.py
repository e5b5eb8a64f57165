"""What a metric of a node is: gauge or counter, in which unit, and the most that it can hold."""

from __future__ import annotations

from typing import Final, NamedTuple


class MetricKind(NamedTuple):
    """What is known of a metric; its values stay as the exporter states them."""

    is_counter: bool
    unit: str | None
    """None where nobody states it."""
    holds_at_most: int | None = None
    """Value at which a counter of few bits stays: it then means "at least"; None for no such."""


_4_BITS, _8_BITS, _16_BITS, _32_BITS = ((1 << bits) - 1 for bits in (4, 8, 16, 32))
_DCGM_GAUGES = {
    "SM_CLOCK": "MHz", "MEM_CLOCK": "MHz", "GPU_TEMP": "C", "MEMORY_TEMP": "C", "POWER_USAGE": "W",
    "GPU_UTIL": "percent", "MEM_COPY_UTIL": "percent", "ENC_UTIL": "percent", "DEC_UTIL": "percent",
    "FB_FREE": "MiB", "FB_USED": "MiB", "FB_RESERVED": "MiB", "FB_TOTAL": "MiB",
    "XID_ERRORS": "code", "ROW_REMAP_FAILURE": "flag", "VGPU_LICENSE_STATUS": "flag",
}  # fmt: skip
_DCGM_COUNTERS = {
    "TOTAL_ENERGY_CONSUMPTION": "mJ", "PCIE_REPLAY_COUNTER": "count", "POWER_VIOLATION": "us",
    "THERMAL_VIOLATION": "us", "SYNC_BOOST_VIOLATION": "us", "BOARD_LIMIT_VIOLATION": "us",
    "LOW_UTIL_VIOLATION": "us", "RELIABILITY_VIOLATION": "us",
    "UNCORRECTABLE_REMAPPED_ROWS": "count", "CORRECTABLE_REMAPPED_ROWS": "count",
    "ECC_SBE_VOL_TOTAL": "count", "ECC_DBE_VOL_TOTAL": "count", "ECC_SBE_AGG_TOTAL": "count",
    "ECC_DBE_AGG_TOTAL": "count", "RETIRED_SBE": "count", "RETIRED_DBE": "count",
    "RETIRED_PENDING": "count", "NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": "count",
    "NVLINK_CRC_DATA_ERROR_COUNT_TOTAL": "count", "NVLINK_REPLAY_ERROR_COUNT_TOTAL": "count",
    "NVLINK_RECOVERY_ERROR_COUNT_TOTAL": "count",
}  # fmt: skip
_DCGM_PROFILING = {"PCIE_TX_BYTES": "B/s", "PCIE_RX_BYTES": "B/s",
                   "NVLINK_TX_BYTES": "B/s", "NVLINK_RX_BYTES": "B/s"}  # fmt: skip
_INFINIBAND = {
    "link_downed": _8_BITS, "link_error_recovery": _8_BITS, "local_link_integrity_errors": _4_BITS,
    "excessive_buffer_overrun_errors": _4_BITS, "symbol_error": _16_BITS,
    "port_errors_received": _16_BITS, "port_constraint_errors_received": _8_BITS,
    "port_constraint_errors_transmitted": _8_BITS, "port_discards_transmitted": _16_BITS,
    "port_transmit_wait": _32_BITS,
}  # fmt: skip
"""Counters of the InfiniBand specification by the bits of its PortCounters."""
METRIC_KINDS: Final = (
    {f"DCGM_FI_DEV_{name}": MetricKind(False, unit) for name, unit in _DCGM_GAUGES.items()}
    | {f"DCGM_FI_DEV_{name}": MetricKind(True, unit) for name, unit in _DCGM_COUNTERS.items()}
    | {f"DCGM_FI_PROF_{name}": MetricKind(False, unit) for name, unit in _DCGM_PROFILING.items()}
    | {
        f"node_infiniband_{name}_total": MetricKind(True, "count", most)
        for name, most in _INFINIBAND.items()
    }
)
"""Metrics by name; names that are not listed tell by their endings."""
XID_GAUGE: Final = "DCGM_FI_DEV_XID_ERRORS"
"""The metric that shows the last XID of a GPU until the next."""
_ENDINGS = {"_celsius": "C", "_watts": "W", "_watt": "W", "_volts": "V", "_amps": "A",
            "_joules": "J", "_hertz": "Hz", "_bytes": "B", "_bytes_per_second": "B/s",
            "_seconds": "s", "_ratio": "ratio", "_percent": "percent"}  # fmt: skip


def metric_kind(name: str) -> MetricKind:
    """What a metric is, by its name alone, so that every source says the same of it.

    A name ending in `_total` is a counter and any other a gauge, as Prometheus names them.

    Examples
    --------
    >>> metric_kind("node_infiniband_link_downed_total").holds_at_most
    255
    >>> metric_kind("node_hwmon_temp_celsius").unit, metric_kind("node_cpu_seconds_total").unit
    ('C', 's')
    """
    if name in METRIC_KINDS:
        return METRIC_KINDS[name]
    if name.startswith("DCGM_FI_PROF_") and name.endswith("_ACTIVE"):
        return MetricKind(False, "ratio")
    begin = name.removesuffix("_total")
    ending = max((end for end in _ENDINGS if begin.endswith(end)), key=len, default=None)
    return MetricKind(begin != name, _ENDINGS[ending] if ending else None)
