"""What a reader of an expected ETTR must mind, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.efficiency.simulated_ettr import MAX_DRAWS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.efficiency.expected_ettr import ExpectedEttr

APART = 0.02
"""Relative difference from the exact form from which on a form is said to depart."""
LEAST = 0.0005
"""Expected ETTR below which forms are no longer compared."""
DALY_YOUNG_LIMIT = 0.1
"""Failures expected during a restart and a write from which on Daly-Young is no longer best."""


def ettr_notes(found: ExpectedEttr) -> Iterator[str]:
    """The sentences that stand beside the numbers."""
    yield from _of_interval(found)
    yield from _of_forms(found)
    yield from _of_run(found)
    yield from _of_simulation(found)


def _of_interval(found: ExpectedEttr) -> Iterator[str]:
    settings = found.settings
    if settings.failures_per_min == 0:
        yield "Nothing fails at a rate of 0: checkpoints are never needed, no interval is best."
        return
    if settings.write_min == 0:
        yield (
            "Writes that cost nothing have no best interval: the shorter, the better."
            + (" The values are the limit of ever shorter ones." if not found.interval_min else "")
        )
        return
    during = settings.failures_per_min * (settings.restart_min + settings.write_min)
    best, at_best = found.optimal_interval_min, found.exact_at_optimum
    if during >= DALY_YOUNG_LIMIT and best is not None and at_best is not None:
        yield (
            f"{during:.2g} failures are expected during one restart and write: Daly-Young's "
            f"interval of {found.daly_young_interval_min:.3g} min is first order and too long "
            f"there; the exact form is highest, {at_best:.3f}, at {best:.3g} min."
        )


def _of_forms(found: ExpectedEttr) -> Iterator[str]:
    if found.exact < LEAST:
        yield "Failures come so fast that next to nothing is trained."
        return
    apart = [
        f"{name} {value:.3f} ({value / found.exact - 1.0:+.1%})"
        for name, value in (("v1", found.v1), ("v2", found.v2), ("full", found.full))
        if abs(value / found.exact - 1.0) > APART
    ]
    if apart:
        yield (
            f"Apart from the exact form's {found.exact:.3f} by more than {APART:.0%}: "
            f"{', '.join(apart)}. v1 leaves out writes, v2 queue and length of the run; all three "
            "are first order in the failure rate, the exact form is of a long run."
        )
    if found.full == 0:
        yield (
            "First-order forms are not positive here and stand as 0: a failure costs more time "
            "than lies between two."
        )


def _of_run(found: ExpectedEttr) -> Iterator[str]:
    if found.exact_of_run is None or found.exact < LEAST:
        return
    if abs(found.exact_of_run / found.exact - 1.0) > APART:
        yield (
            f"A run of {found.settings.run_days:g} days is too short for the long run's "
            f"{found.exact:.3f}: its first wait and start-up make it {found.exact_of_run:.3f}."
        )


def _of_simulation(found: ExpectedEttr) -> Iterator[str]:
    simulated = found.simulated
    if simulated is None:
        return
    if simulated.ettr.value is None:
        yield (
            f"Not simulated: it would take more than {MAX_DRAWS:,} times to failure. Simulate "
            "fewer runs, or a long one."
        )
    elif simulated.standard_error is None:
        yield (f"The simulation saw too little for an interval: simulate more {simulated.of}.")
