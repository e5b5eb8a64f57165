"""What counts as a failure: one dictionary of named definitions, each a condition on a verdict.

Rate, MTTF, ETTR, ledger and incidents count by `infrastructure`; the rate can be asked by another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from analytics.frames import DEFINITION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.frames import FailureDefinition

NOT_BY_ITS_USER: Final = "(ended_by_user IS NOT TRUE OR method = 'human')"
"""What a user cancelled is no failure, whatever its evidence; a person can decide that it was."""

_CONDITIONS: Final[Mapping[FailureDefinition, str]] = {
    "infrastructure": "domain IN ('hardware', 'system_software') OR node_lost",
    "paper": "state = 'NODE_FAIL' OR state = 'FAILED' AND critical_check",
    "hardware": "domain = 'hardware' OR node_lost",
    "scheduler": "node_lost",
}

FAILED_BY: Final[Mapping[FailureDefinition, str]] = {
    name: f"({NOT_BY_ITS_USER} AND ({condition}))" for name, condition in _CONDITIONS.items()
}
"""Definition -> its condition on the columns of `failures`, or of `verdict` in `data.said`.

- infrastructure: verdict hardware or system software by any evidence that survives the weighing,
  or NODE_FAIL or another lost node, whatever the verdict;
- paper: NODE_FAIL, or FAILED with a critical or fatal health event near its end, whatever the
  verdict (Kokolis et al., arXiv 2410.21680);
- hardware: verdict hardware, or a lost node;
- scheduler: a lost node alone.
"""

INFRASTRUCTURE: Final = FAILED_BY[DEFINITION]
"""What every count goes by that lets nobody choose."""

DEFAULT_SINCE_SCHEMA: Final = 6
"""Schema version from which on the rate counts by it; before, by `hardware`."""

UNEXPLAINED: Final = f"""({NOT_BY_ITS_USER} AND domain = 'unknown' AND cause <> 'requeued'
  AND NOT node_lost)"""
"""Failed, the node was not lost, and no record says whose fault it was."""

OUT_OF_SERVICE: Final = """list_has_any(string_split(state, '+'), ['DOWN', 'DRAIN', 'DRAINED',
  'DRAINING', 'FAIL', 'FAILING', 'ERROR', 'MAINT', 'NOT_RESPONDING', 'REBOOT_ISSUED', 'INVAL',
  'INVALID_REG'])"""
"""Condition on the state that an inventory shows of a node: no job can start there."""

FAILED: Final = """CASE state WHEN 'FAILED' THEN true WHEN 'NODE_FAIL' THEN true
  WHEN 'TIMEOUT' THEN true WHEN 'OUT_OF_MEMORY' THEN true WHEN 'BOOT_FAIL' THEN true
  WHEN 'DEADLINE' THEN true WHEN 'REQUEUED' THEN true
  ELSE failed_node IS NOT NULL OR coalesce(contains(flags, 'REQUEUE'), false) END"""
"""Condition of an attempt that gets a verdict: it failed, or was requeued."""

ENDED_BY_USER: Final = """coalesce(state = 'CANCELLED'
  AND state_raw IS DISTINCT FROM 'CANCELLED by 0', false)"""
"""Condition of an attempt that its user ended: cancelled, and not by root (user id 0)."""

TOLD_TWICE = """health_events.rowid IN (
  SELECT shown.rowid FROM health_events AS shown JOIN health_events AS line
    ON line.cluster = shown.cluster AND line.node = shown.node AND line.xid = shown.xid
    AND line.observed_at BETWEEN shown.observed_at - INTERVAL 10 MINUTE
      AND shown.observed_at + INTERVAL 1 MINUTE
  WHERE shown.source <> 'kernel' AND line.source = 'kernel')"""
"""Condition of an XID that another source shows after the kernel's log told it: one error, of which
the kernel knows the time. DCGM's gauge shows it with the next sample, so up to ten minutes later; a
minute is left for clocks. GPUs are not compared: one source counts them, one has addresses."""
