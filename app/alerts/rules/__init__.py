"""The rules: a module each, with its RULE. A new one is one more file."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.alerts.rule import Rule


@cache
def rules() -> tuple[Rule, ...]:
    """All rules, by name."""
    found = (
        importlib.import_module(f"{__name__}.{module.name}").RULE
        for module in pkgutil.iter_modules(__path__)
    )
    return tuple(sorted(found, key=lambda rule: rule.name))
