"""What counters of InfiniBand ports are called by sysfs and by tools, and by node_exporter."""

from __future__ import annotations

import re
from typing import NamedTuple

from data.ingest.reader import RecordError

SETTING, NO_VALUE = "no counter", "not counted by the port"
_BEGIN = "node_infiniband_"
_OF_FILES = {
    "port_rcv_errors": "port_errors_received", "port_xmit_discards": "port_discards_transmitted",
    "port_rcv_constraint_errors": "port_constraint_errors_received",
    "port_xmit_constraint_errors": "port_constraint_errors_transmitted",
    "port_rcv_remote_physical_errors": "port_receive_remote_physical_errors",
    "port_rcv_switch_relay_errors": "port_receive_switch_relay_errors",
    "port_xmit_wait": "port_transmit_wait",
    "port_rcv_data": "port_data_received_bytes", "port_xmit_data": "port_data_transmitted_bytes",
    "port_rcv_packets": "port_packets_received", "port_xmit_packets": "port_packets_transmitted",
    "unicast_rcv_packets": "unicast_packets_received",
    "unicast_xmit_packets": "unicast_packets_transmitted",
    "multicast_rcv_packets": "multicast_packets_received",
    "multicast_xmit_packets": "multicast_packets_transmitted",
}  # fmt: skip
"""File of sysfs -> node_exporter's metric; others are called as their file."""
_OF_TOOLS = {
    "symbolerrorcounter": "symbol_error", "symbolerrors": "symbol_error",
    "linkerrorrecoverycounter": "link_error_recovery", "linkrecovers": "link_error_recovery",
    "linkdownedcounter": "link_downed", "linkdowned": "link_downed",
    "rcverrors": "port_rcv_errors",
    "rcvremotephysicalerrors": "port_rcv_remote_physical_errors",
    "rcvremotephyserrors": "port_rcv_remote_physical_errors",
    "rcvswitchrelayerrors": "port_rcv_switch_relay_errors",
    "rcvswrelayerrors": "port_rcv_switch_relay_errors",
    "xmitdiscards": "port_xmit_discards", "xmtdiscards": "port_xmit_discards",
    "xmitconstrainterrors": "port_xmit_constraint_errors",
    "xmtconstrainterrors": "port_xmit_constraint_errors",
    "rcvconstrainterrors": "port_rcv_constraint_errors",
    "locallinkintegrityerrors": "local_link_integrity_errors",
    "linkintegrityerrors": "local_link_integrity_errors",
    "excessivebufferoverrunerrors": "excessive_buffer_overrun_errors",
    "excbufoverrunerrors": "excessive_buffer_overrun_errors",
    "xmitwait": "port_xmit_wait", "xmtwait": "port_xmit_wait",
    "xmitdata": "port_xmit_data", "xmtdata": "port_xmit_data", "rcvdata": "port_rcv_data",
    "xmitpkts": "port_xmit_packets", "xmtpkts": "port_xmit_packets",
    "rcvpkts": "port_rcv_packets",
    "unicastxmitpkts": "unicast_xmit_packets", "unicastrcvpkts": "unicast_rcv_packets",
    "multicastxmitpkts": "multicast_xmit_packets", "multicastrcvpkts": "multicast_rcv_packets",
}  # fmt: skip
"""Counter of perfquery in small letters, without its `Port` -> file of sysfs."""
_OCTETS = {"port_rcv_data": 4, "port_xmit_data": 4}
"""Data is counted in words of four octets."""
_NUMBER = re.compile(r"(\d{1,20})(?: \([^)]*\))?\s*\Z")
_SILENT = re.compile(r"N/A|No data|Invalid argument|\Z", re.IGNORECASE)


class Setting(NamedTuple):
    """A file beside the counters that is a gauge of node_exporter."""

    metric: str
    mark: re.Pattern[str]
    factor: float


_SETTINGS = {
    "state": Setting("state_id", re.compile(r"(\d{1,3}):"), 1),
    "phys_state": Setting("physical_state_id", re.compile(r"(\d{1,3}):"), 1),
    "rate": Setting("rate_bytes_per_second", re.compile(r"(\d{1,6}(?:\.\d+)?) Gb/sec"), 1e9 / 8),
}


def of_file(path: str, text: str) -> tuple[str, float] | str:
    """Metric and value of a file below a port, or why it is skipped.

    Raises
    ------
    RecordError
        Where no number stands in it.

    Examples
    --------
    >>> of_file("counters/port_rcv_data", "10"), of_file("state", "4: ACTIVE")
    (('node_infiniband_port_data_received_bytes_total', 40.0), ('node_infiniband_state_id', 4.0))
    """
    folder, _, name = path.rpartition("/")
    if folder and name != "lifespan":
        return _counter(name.lower(), text)
    setting = _SETTINGS.get(name)
    if setting is None:
        return SETTING
    if (found := setting.mark.match(text)) is None:
        raise RecordError("no number as value")
    return _BEGIN + setting.metric, float(found[1]) * setting.factor


def of_tool(name: str, text: str) -> tuple[str, float] | str:
    """The same of a counter that perfquery or ibqueryerrors prints.

    Examples
    --------
    >>> of_tool("LinkDowned", "3"), of_tool("PortXmitWait", "4")[0]
    (('node_infiniband_link_downed_total', 3.0), 'node_infiniband_port_transmit_wait_total')
    """
    small = name.lower()
    return _counter(_OF_TOOLS.get(small.removeprefix("port"), small), text)


def _counter(name: str, text: str) -> tuple[str, float] | str:
    if _SILENT.match(text):
        return NO_VALUE
    if (found := _NUMBER.match(text)) is None:
        raise RecordError("no number as value")
    called = _OF_FILES.get(name, name.replace("vl15dropped", "vl15_dropped"))
    return f"{_BEGIN}{called}_total", float(found[1]) * _OCTETS.get(name, 1)
