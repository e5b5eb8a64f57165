"""What follows from the members and verdicts of one incident."""

from __future__ import annotations

from typing import Any

import pandas as pd

from analytics.failures.incidents.incident import Incident
from analytics.failures.taxonomy import taxonomy

AT = pd.Timestamp("2026-01-05T12:00Z")
ROW = {"incident_id": "i", "cause": "pcie", "decided": False, "start_at": AT,
       "end_at": AT + pd.Timedelta("90min"), }  # fmt: skip
MEMBERS = ["kind", "key", "start_at", "end_at", "node", "text", "severity", "role", "signal",
           "source", "job_id", "n_gpus", "began_at", "domain"]  # fmt: skip


def _incident(*confidences: tuple[str, float], **row: Any) -> Incident:
    members = pd.DataFrame(
        [
            (kind, kind, at, at, "n1", "said", None, role, "s", "scheduler", "7", 8, pd.NaT, None)
            for kind, at, role in (
                ("failure", AT + pd.Timedelta("1min"), "seed"),
                ("health_event", AT, "seed"),
                ("preemption", AT + pd.Timedelta("2min"), "consequence"),
            )
        ],
        columns=MEMBERS,
    )
    verdicts = pd.DataFrame(
        [(cause, confidence, "7", AT, []) for cause, confidence in confidences],
        columns=["cause", "confidence", "job_id", "failed_at", "evidence"],
    )
    return Incident(ROW | row, members, taxonomy().causes["pcie"], "i", verdicts)


def test_its_confidence_is_the_largest_of_the_verdicts_that_name_its_cause() -> None:
    assert _incident(("pcie", 0.7), ("pcie", 0.9), ("nic", 0.99)).confidence == 0.9
    assert _incident(("nic", 0.99)).confidence is None
    assert _incident().confidence is None
    assert _incident(("pcie", 0.7), decided=True).confidence == 1.0


def test_it_lasts_from_its_first_record_to_its_last() -> None:
    assert _incident().lasted_hours == 1.5


def test_its_attempts_are_those_that_failed_or_were_preempted() -> None:
    assert _incident().attempts["kind"].tolist() == ["failure", "preemption"]


def test_members_tell_the_time_since_the_first_failure_or_critical_event() -> None:
    assert _incident().dated_members["seconds_after_start"].tolist() == [60.0, 0.0, 120.0]
