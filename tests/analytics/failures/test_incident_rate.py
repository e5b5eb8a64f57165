"""Number, rate and cost of incidents."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from analytics.failures.incident_rate import IncidentSummary, incident_summary
from analytics.failures.taxonomy import taxonomy
from analytics.reliability.failure_rate import poisson_rate

COLUMNS = {
    "cause": "object", "domain": "object", "status": "object", "n_jobs": "int64",
    "loop_failures": "int64", "n_unmeasured": "int64", "lost_gpu_seconds": "Int64",
    "second_order_gpu_seconds": "Int64",
}  # fmt: skip


def incident(**given: Any) -> dict[str, Any]:
    base = {"cause": "pcie", "domain": "hardware", "status": "open", "n_jobs": 1,
            "loop_failures": 0, "n_unmeasured": 0, "lost_gpu_seconds": 3600,
            "second_order_gpu_seconds": 0}  # fmt: skip
    return base | given


def summed(
    *rows: dict[str, Any], exposure: float | None = 500.0, losses: dict[str, float] | None = None
) -> IncidentSummary:
    table = pd.DataFrame(list(rows), columns=list(COLUMNS)).astype(COLUMNS)
    return incident_summary(table, exposure, causes=taxonomy().causes, losses=losses)


def test_the_rate_counts_incidents_that_hit_a_job_with_garwoods_interval() -> None:
    found = summed(*[incident()] * 4, incident(n_jobs=0, lost_gpu_seconds=0))
    rate, per_day = found.rate_per_1000_node_days, poisson_rate(4, 500.0)
    assert (found.n_incidents, found.n_with_jobs, rate.n) == (5, 4, 4)
    assert (rate.value, rate.lower, rate.upper) == pytest.approx(
        (8.0, 1000 * per_day.lower, 1000 * per_day.upper)
    )


@pytest.mark.parametrize("exposure", [None, 0.0])
def test_without_exposure_the_rate_is_unknown_and_incidents_still_count(
    exposure: float | None,
) -> None:
    found = summed(incident(), exposure=exposure)
    assert (found.n_with_jobs, found.rate_per_1000_node_days.value) == (1, None)


def test_losses_add_up_by_cause_the_dearest_first() -> None:
    found = summed(
        incident(lost_gpu_seconds=1800, status="resolved"),
        incident(cause="nvlink", lost_gpu_seconds=9000, second_order_gpu_seconds=5400, n_jobs=3),
        incident(cause="of this site", domain="user", loop_failures=5),
    )
    assert (found.lost_gpu_hours, found.second_order_gpu_hours) == (4.0, 1.5)
    assert (found.n_open, found.n_crash_loops) == (2, 1)
    assert [(one.title, one.n_jobs, one.lost_gpu_hours) for one in found.by_cause] == [
        ("NVLink or NVSwitch error", 3, 2.5),
        ("of this site", 1, 1.0),
        ("PCIe error", 1, 0.5),
    ]


def test_what_was_not_measured_is_counted_beside_the_loss() -> None:
    unknown = incident(lost_gpu_seconds=None, second_order_gpu_seconds=None, n_unmeasured=2)
    found = summed(incident(), unknown)
    assert (found.lost_gpu_hours, found.n_unmeasured) == (1.0, 2)


def test_no_incident_costs_nothing() -> None:
    found = summed()
    assert (found.n_incidents, found.lost_gpu_hours, found.by_cause) == (0, 0.0, ())
    assert found.rate_per_1000_node_days.value == 0.0


def test_the_ledger_says_which_cause_cost_most_and_the_rule_does_not() -> None:
    dear = incident(cause="nvlink", lost_gpu_seconds=10_800)
    losses = {"pcie": 7.0, "nvlink": 2.0, "power": 1.0}
    found = summed(incident(), dear, losses=losses)
    assert [(one.cause, one.n_incidents, one.ledger_gpu_hours) for one in found.by_cause] == [
        ("pcie", 1, 7.0), ("nvlink", 1, 2.0), ("power", 0, 1.0),
    ]  # fmt: skip
    assert found.costliest is not None
    assert (found.costliest.cause, found.ledger_gpu_hours) == ("pcie", 10.0)
    assert sum(one.lost_gpu_hours for one in found.by_cause) == found.lost_gpu_hours == 4.0


def test_without_a_ledger_no_cause_is_the_costliest() -> None:
    found = summed(incident(), incident(cause="nvlink", lost_gpu_seconds=10_800))
    assert (found.costliest, found.ledger_gpu_hours) == (None, None)
    assert [one.cause for one in found.by_cause] == ["nvlink", "pcie"]
    assert summed(losses={}).costliest is None


def test_a_cause_in_two_domains_carries_its_loss_once() -> None:
    found = summed(incident(), incident(domain="user"), incident(), losses={"pcie": 3.0})
    assert [(one.domain, one.ledger_gpu_hours) for one in found.by_cause] == [
        ("hardware", 3.0), ("user", 0.0),
    ]  # fmt: skip
