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
    "loop_failures": "int64",
}  # fmt: skip


def incident(**given: Any) -> dict[str, Any]:
    base = {"cause": "pcie", "domain": "hardware", "status": "open", "n_jobs": 1,
            "loop_failures": 0}  # fmt: skip
    return base | given


def summed(
    *rows: dict[str, Any], exposure: float | None = 500.0, losses: dict[str, float] | None = None
) -> IncidentSummary:
    table = pd.DataFrame(list(rows), columns=list(COLUMNS)).astype(COLUMNS)
    return incident_summary(table, exposure, causes=taxonomy().causes, losses=losses)


def test_the_rate_counts_incidents_that_hit_a_job_with_garwoods_interval() -> None:
    found = summed(*[incident()] * 4, incident(n_jobs=0))
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


def test_incidents_are_counted_by_cause() -> None:
    found = summed(
        incident(status="resolved"),
        incident(cause="nvlink", n_jobs=3),
        incident(cause="nvlink"),
        incident(cause="of this site", domain="user", loop_failures=5),
    )
    assert (found.n_open, found.n_crash_loops) == (3, 1)
    assert [(one.title, one.n_incidents, one.n_jobs) for one in found.by_cause] == [
        ("NVLink or NVSwitch error", 2, 4),
        ("of this site", 1, 1),
        ("PCIe error", 1, 1),
    ]


def test_no_incident_costs_nothing() -> None:
    found = summed()
    assert (found.n_incidents, found.by_cause) == (0, ())
    assert found.rate_per_1000_node_days.value == 0.0


def test_the_ledger_says_which_cause_cost_most() -> None:
    losses = {"pcie": 7.0, "nvlink": 2.0, "power": 1.0}
    found = summed(incident(), incident(cause="nvlink"), losses=losses)
    assert [(one.cause, one.n_incidents, one.ledger_gpu_hours) for one in found.by_cause] == [
        ("pcie", 1, 7.0), ("nvlink", 1, 2.0), ("power", 0, 1.0),
    ]  # fmt: skip
    assert found.costliest is not None
    assert (found.costliest.cause, found.ledger_gpu_hours) == ("pcie", 10.0)


def test_without_a_ledger_no_cause_is_the_costliest() -> None:
    found = summed(incident(), incident(cause="nvlink"), incident(cause="nvlink"))
    assert (found.costliest, found.ledger_gpu_hours) == (None, None)
    assert [one.cause for one in found.by_cause] == ["nvlink", "pcie"]
    assert summed(losses={}).costliest is None


def test_a_cause_in_two_domains_carries_its_loss_once() -> None:
    found = summed(incident(), incident(domain="user"), incident(), losses={"pcie": 3.0})
    assert [(one.domain, one.ledger_gpu_hours) for one in found.by_cause] == [
        ("hardware", 3.0), ("user", 0.0),
    ]  # fmt: skip
