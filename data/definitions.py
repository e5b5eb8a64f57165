"""What counts as a failure of the infrastructure: the present definitions, and who counts by which.

Each is a condition on a verdict, by its columns `domain` and `node_lost`; that of an attempt that
gets a verdict at all is one on `jobs`.
"""

HARDWARE_OR_LOST_NODE = "(domain = 'hardware' OR node_lost)"
"""Hardware by any evidence, or a node lost whatever the verdict.

Counted by failure rate, MTTF and their groups, of attempts with exposure: those without GPUs count
in no rate of a cluster that has GPUs.
"""

EXPOSED_HARDWARE_OR_LOST_NODE = f"(exposed AND {HARDWARE_OR_LOST_NODE})"
"""The same where attempts without exposure are listed too, with a column `exposed` that tells.

Counted by the causes of failures (`faultline failures` and its page).
"""

INFRASTRUCTURE = "(domain IN ('hardware', 'system_software') OR node_lost)"
"""Hardware or system software by any evidence, or a node lost whatever the verdict.

Counted by the ledger, runs, ETTR and incidents, of attempts of any size.
"""

FAILED = """CASE state WHEN 'FAILED' THEN true WHEN 'NODE_FAIL' THEN true
  WHEN 'TIMEOUT' THEN true WHEN 'OUT_OF_MEMORY' THEN true WHEN 'BOOT_FAIL' THEN true
  WHEN 'DEADLINE' THEN true WHEN 'REQUEUED' THEN true
  ELSE failed_node IS NOT NULL OR coalesce(contains(flags, 'REQUEUE'), false) END"""
"""Condition of an attempt that gets a verdict: it failed, or was requeued."""
