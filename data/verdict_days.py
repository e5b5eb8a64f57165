"""Verdicts alike on a day: SQL that queries, which add up rows, share with the stage that keeps the
sums.
"""

from __future__ import annotations

from typing import Final

from data.running_time import local

ALIKE: Final = """cluster, partition, n_gpus, n_nodes, state, node_lost, ended_by_user,
  critical_check, domain, cause, method"""
"""What attempts alike share besides the day."""

EACH: Final = f"""{ALIKE}, CAST({local("failed_at")} AS DATE) AS day, 1 AS n_attempts,
  CASE WHEN start_at IS NULL THEN 0 ELSE 1 END AS n_started,
  CASE WHEN start_at IS NOT NULL THEN n_gpus
    * (greatest(0, epoch_us(failed_at) - epoch_us(start_at)) // 1000000) END AS gpu_seconds"""
"""Columns of `verdict_days` of one failed attempt with its cluster."""
