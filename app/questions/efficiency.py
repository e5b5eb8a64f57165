"""How much of a job's time trains, and where does the rest go?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.efficiency import expected_ettr as expected

if TYPE_CHECKING:
    from analytics.efficiency.ettr_settings import EttrSettings
    from analytics.efficiency.expected_ettr import ExpectedEttr


def expected_ettr(
    settings: EttrSettings, *, simulations: int = 0, seed: int = 0, conf_level: float = 0.90
) -> ExpectedEttr:
    """What ETTR follows for a job from a failure rate and the costs of a failure?"""
    return expected.expected_ettr(
        settings, simulations=simulations, seed=seed, conf_level=conf_level
    )
