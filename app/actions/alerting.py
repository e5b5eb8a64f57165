"""The rules of alerts are asked when records came."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.current import read_current
from data.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path


def tell_alerts(root: Path) -> list[str]:
    """Asks the rules, and sends what they tell: lines of what somebody should know of that.

    Records are in the store whatever comes of it: what goes wrong here is told, and no more.
    """
    if read_current(root) is None:
        return []
    from app.alerts.evaluate import evaluate  # here: who lists sources asks no rule

    try:
        done = evaluate(root)
    except DataError as error:
        return [f"the rules of alerts were not asked: {error}"]
    failed = 0 if done.sent is None else done.sent.n_again + done.sent.n_refused
    return [f"{failed:,} messages of alerts were not taken: see `faultline alerts`"] * bool(failed)
