"""The table of precedence: how strongly each kind of evidence speaks, and for which cause."""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from analytics.errors import AnalysisError
from analytics.failures.taxonomy import Taxonomy, shipped_document, taxonomy
from analytics.failures.xid import xid_entries

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Rule:
    """A cause named by the check and the text of a piece of evidence."""

    check: str
    """Pattern of the name of the check; `*` is any, also none."""
    text: re.Pattern[str]
    cause: str


@dataclass(frozen=True)
class Weights:
    """The table of precedence: odds by kind of evidence, rules by text."""

    odds: Mapping[str, float]
    before_s: float
    """Seconds before the end of its process that a kernel line about one process counts."""
    after_s: float
    proximate: frozenset[str]
    """Causes seen where something else is at fault."""
    waiting: re.Pattern[str]
    """Reasons of the scheduler for which a job waited: they say nothing of its end."""
    only_the_program: frozenset[str]
    """Causes that no fault of a node makes."""
    rules: tuple[Rule, ...]
    taxonomy: Taxonomy

    def cause_of(self, check: str | None, text: str | None) -> str | None:
        """Cause that a check and its text name; None where they name none.

        Parameters
        ----------
        check : str or None
            Name of the check, `node_event` or `scheduler`.
        text : str or None
            Message or reason. A reason such as `check-ib: port 1 down` names its check itself.

        Returns
        -------
        str or None
            The cause of the first rule that matches, else that of an XID in the text (unless a
            program makes it), else the check's own by the taxonomy.

        Examples
        --------
        >>> weights().cause_of("check-ipmitool", "PSU 2 failure detected")
        'power'
        >>> weights().cause_of("node_event", "check-ib: port 1 state DOWN")
        'ib_link'
        >>> weights().cause_of("node_event", "NHC: Xid 79 on GPU 3")
        'gpu_unavailable'
        >>> weights().cause_of("node_event", "rebooted by hand") is None
        True
        """
        name, words = (check or "").lower(), text or ""
        head, colon, _ = words.partition(":")
        inner = head.strip().lower() if colon and " " not in head.strip() else ""
        for rule in self.rules:
            matched = any(fnmatch.fnmatchcase(one, rule.check) for one in {name, inner or name})
            if matched and rule.text.search(words):
                return rule.cause
        if cause := self._of_xid(words):
            return cause
        for one in (name, inner):
            if one and (cause := self.taxonomy.cause_of("gcm", one)):
                return cause
        return None

    def _of_xid(self, words: str) -> str | None:
        """Cause of the first XID that a text names."""
        named = re.search(_XID, words, re.IGNORECASE)
        entry = xid_entries().get(int(named[1])) if named else None
        if entry is None or entry.cause == "unknown":
            return None
        return None if self.taxonomy.domain_of(entry.cause) == "user" else entry.cause


_XID = r"\bxid(?:s|\(s\))?\W{0,4}(?:errors?\W{1,3}|code\W{1,3})?(\d{1,3})\b"


def weights(site: Mapping[str, Any] | None = None, causes: Taxonomy | None = None) -> Weights:
    """The table of precedence, with a site's own weights and rules on top.

    Parameters
    ----------
    site : mapping, optional
        Section ``[attribution]`` of site.toml: ``weights`` (kind of evidence -> odds > 0) and
        ``rules`` (a list of ``check``, ``text``, ``cause``; they come before ours).
    causes : Taxonomy, optional
        The site's taxonomy.

    Raises
    ------
    AnalysisError
        Where a weight, pattern or cause is not what it must be.

    References
    ----------
    The rule that a cause counts by "should the node be isolated for this?": Kokolis et al.,
    arXiv 2410.21680, section on attribution. The weights are ours.

    Examples
    --------
    >>> weights().odds["fatal"] > weights().odds["critical"] > weights().odds["process"]
    True
    """
    own = {key: value for key, value in (site or {}).items() if value}
    if not own and (causes is None or causes is taxonomy()):
        return _default()
    return _weights(own, causes or taxonomy())


@cache
def _default() -> Weights:
    return _weights({}, taxonomy())


def _weights(site: Mapping[str, Any], causes: Taxonomy) -> Weights:
    shipped = shipped_document("attribution.toml")
    odds = dict(shipped["weights"])
    for kind, value in (site.get("weights") or {}).items():
        if kind not in odds:
            raise AnalysisError(
                f"attribution.weights.{kind} is unknown: there are {', '.join(odds)}"
            )
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise AnalysisError(
                f"attribution.weights.{kind} must be odds >= 0, got {value!r}: pass e.g. 12"
            )
        odds[kind] = float(value)
    rules = [_rule(one, causes) for one in (*(site.get("rules") or ()), *shipped["rules"])]
    return Weights(
        odds=odds,
        before_s=float(shipped["process"]["before_seconds"]),
        after_s=float(shipped["process"]["after_seconds"]),
        proximate=frozenset(shipped["proximate"]["causes"]),
        waiting=re.compile(shipped["waiting"]["reasons"], re.IGNORECASE),
        only_the_program=frozenset(shipped["only_the_program"]["causes"]),
        rules=tuple(rules),
        taxonomy=causes,
    )


def _rule(given: Mapping[str, Any], causes: Taxonomy) -> Rule:
    """One rule, checked."""
    unknown = set(given) - {"check", "text", "cause"}
    if unknown or "cause" not in given:
        raise AnalysisError(
            f"attribution.rules: a rule has check, text and cause, got {dict(given)!r}: mend it"
        )
    causes.domain_of(given["cause"])
    try:
        text = re.compile(given.get("text", ""), re.IGNORECASE)
    except (re.error, TypeError) as error:
        raise AnalysisError(
            f"attribution.rules: text must be a regular expression, got {given['text']!r} "
            f"({error}): mend it"
        ) from None
    return Rule(str(given.get("check", "*")).lower(), text, given["cause"])
