"""Labels of one other scheme, and the cause that each one means."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_BLANK = re.compile(r"[\s_-]+")
NO_FAILURE = ""
"""Cause of a label that means no failure."""


@dataclass(frozen=True)
class LabelScheme:
    """The labels of a scheme, from and to causes."""

    causes: Mapping[str, str]
    """Label -> cause, `NO_FAILURE` for a label that means none."""
    further: Mapping[str, str] = field(default_factory=dict)
    """Cause -> label, for causes that no label means exactly."""
    longest_known: bool = False
    """Whether a label that goes on after a known one, by words, means the same."""

    def cause_of(self, label: str) -> str | None:
        """Cause that a label means; None for an unknown label and for one that means no failure.

        Letter case, dashes, underscores and spaces do not count. ``A/B`` is subcause B of cause A,
        and A where B is unknown.

        Examples
        --------
        >>> scheme = LabelScheme({"Software": "software", "OS": "operating_system"})
        >>> [scheme.cause_of(label) for label in ("os", "Software/OS", "Software/other", "other")]
        ['operating_system', 'operating_system', 'software', None]
        """
        words = normal(label)
        if words in self._by_label:
            return self._by_label[words] or None
        head, slash, rest = (part.strip() for part in words.partition("/"))
        if slash and head in self._by_label:
            return self._by_label.get(rest, self._by_label[head]) or None
        while self.longest_known and " " in words:
            words = words.rpartition(" ")[0]
            if words in self._by_label:
                return self._by_label[words] or None
        return None

    def label_of(self, cause: str) -> str | None:
        """Label that means a cause, of several the first, else the nearest; None without any."""
        return self._by_cause.get(cause)

    def with_own(self, own: Mapping[str, str]) -> LabelScheme:
        """The scheme with a site's labels, which win."""
        taken = {normal(label) for label in own}
        kept = {la: cause for la, cause in self.causes.items() if normal(la) not in taken}
        return LabelScheme({**own, **kept}, self.further, self.longest_known)

    @cached_property
    def _by_label(self) -> dict[str, str]:
        return {normal(label): cause for label, cause in self.causes.items()}

    @cached_property
    def _by_cause(self) -> dict[str, str]:
        table: dict[str, str] = {}
        for label, cause in self.causes.items():
            if cause:
                table.setdefault(cause, label)
        return {**self.further, **table}


def normal(label: str) -> str:
    """A label without what does not count.

    Examples
    --------
    >>> normal(" Check-IB_link ")
    'check ib link'
    """
    return _BLANK.sub(" ", label).strip().casefold()
