"""What is said of a node that is a lemon or to be watched: reasons, what to do, a ticket."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Final

from analytics.nodes.validation_plan import BENCHMARKS
from app.words import moments, numbers
from app.words.plain import one_line, shortened

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from analytics.nodes.lemons import JudgedNode
    from analytics.nodes.one_user import OneUser
    from analytics.nodes.together import SharedFault
    from app.answers.nodes.judged_nodes import ClusterVerdicts

MOST_NAMED: Final = 3
MOST_CODES: Final = 3
LONGEST: Final = 60
MOST_LINES: Final = 12
"""Records in the text of a ticket, the latest."""
REPAIRED_OFTEN: Final = 2
"""Tickets from which on another repair of the same node is not worth trying."""
SAID: Final = {
    "job_failure": ("failed job", "failed jobs"),
    "out": ("time out of service", "times out of service"),
    "ticket": ("repair ticket", "repair tickets"),
    "xid": ("day with a critical event", "days with a critical event"),
    "warning": ("day with a lesser XID of hardware", "days with lesser XIDs of hardware"),
}
"""Kinds of records, one and many."""


@dataclass(frozen=True)
class Told:
    """What is said of one node that is a lemon or to be watched, once it is asked for."""

    of: ClusterVerdicts
    at: int

    @property
    def node(self) -> JudgedNode:
        """The node."""
        return self.of.nodes[self.at]

    @cached_property
    def _rows(self) -> pd.DataFrame:
        """Its records."""
        return self.of.events[self.of.events["place"] == self.at]

    @cached_property
    def reasons(self) -> tuple[str, ...]:
        """What speaks against it."""
        return _reasons(self.node, self._rows, self.of.titles)

    @cached_property
    def action(self) -> str:
        """What to do."""
        return _action(self.node, self._rows, is_out=self.of.is_out(self.at))

    @property
    def ticket(self) -> str:
        """Text of a repair ticket."""
        return _ticket(self.node, self._rows, self.reasons, self.action, self.of)

    @property
    def command(self) -> str:
        """The line that drains it; it is for a person to run."""
        why = f"lemon: {_occasions(self.node)} in {self.of.window.days:.0f} days"
        return drain_command(self.node.node, why, uses_slurm=self.of.uses_slurm)


def _reasons(node: JudgedNode, rows: pd.DataFrame, titles: Mapping[str, str]) -> tuple[str, ...]:
    """What speaks against it, the gravest first, each with what was seen most."""
    said = [_occasions(node)]
    seen: dict[str, list[str | None]] = {kind: [] for kind in SAID}
    for kind, share, reason in zip(rows["signal"], rows["share"], rows["reason"], strict=True):
        if kind in SAID and share >= 1:
            seen[kind].append(reason if isinstance(reason, str) else None)
    for kind, (one, many) in SAID.items():
        if found := seen[kind]:
            told = (_codes(titles.get(reason, reason)) for reason in found if reason is not None)
            codes = Counter(chain.from_iterable(told)).most_common(MOST_CODES)
            named = ", ".join(code for code, _ in codes)
            told_by = f" ({named})" if named else ""
            said.append(f"{numbers.counted(len(found), one, many)}{told_by}")
    excluders = rows[rows["signal"] == "excluded"]["user"].nunique()
    if excluders:
        said.append(f"excluded by {numbers.counted(excluders, 'user')}")
    return (*said, *beyond_counts(node))


def beyond_counts(node: JudgedNode) -> tuple[str, ...]:
    """What its neighbours and its users say of it."""
    said = []
    if node.group is not None:
        said.append(f"{node.group.grouping} {node.group.name} is bad as a whole")
    if node.fault is not None:
        said.append(_with_others(node.node, node.fault))
    if node.one_user is not None:
        said.append(_of_one_user(node.one_user))
    elif node.why:
        said.append(node.why)
    return tuple(said)


def _with_others(node: str, fault: SharedFault) -> str:
    """With whom it goes down."""
    others = [name for name in fault.nodes if name != node]
    named = ", ".join(others[:MOST_NAMED])
    if len(others) > MOST_NAMED:
        named += f" and {len(others) - MOST_NAMED:,} more"
    at = fault.nodes.index(node)
    times = f"{fault.n_together[at]:,} of {numbers.counted(fault.n_down[at], 'time')}"
    return f"went down together with {named} {within(fault)}, {times}: a shared fault, not the node"


def within(fault: SharedFault) -> str:
    """In what time all of them went down."""
    return f"within {max(math.ceil(fault.within_s), 1)} s"


def _of_one_user(one: OneUser) -> str:
    """What lays its failures on one user."""
    of_all = f"{one.n_failed:,} of {numbers.counted(one.n_all, 'occasion')} with failed jobs"
    ran = ""
    if one.others_days is not None:
        ran = f", where others' jobs ran {numbers.number(one.others_days)} node-days"
    return f"{of_all} are of one user{ran}: the user's own job may be the cause"


def _occasions(node: JudgedNode) -> str:
    """How often something was wrong, beside what is usual."""
    n = node.ratio.n if node.ratio else 0
    return f"{numbers.counted(n, 'time')} in trouble where {numbers.few(node.expected)} is usual"


def _action(node: JudgedNode, rows: pd.DataFrame, *, is_out: bool | None) -> str:
    """What to do, by the records: the tests that show such a defect, or a return to the vendor."""
    if node.verdict == "watch":
        first = "Test it before it returns" if is_out else "Keep in service"
        return f"{first}; {_what_decides(node)}"
    first = "Keep it out of service" if is_out else "Drain"
    if (rows["signal"] == "ticket").sum() >= REPAIRED_OFTEN:
        return f"{first}; repairs did not hold, so hand it to the vendor"
    causes = set(rows["reason"].dropna())
    tests = [each.name for each in BENCHMARKS if causes & set(each.causes)]
    if tests:
        return f"{first}; test with {', '.join(tests[:MOST_CODES])}"
    return f"{first}; run the full validation"


def _what_decides(node: JudgedNode) -> str:
    """What would make it a lemon, and what would clear it."""
    if node.one_user is not None:
        return "run another user's job or a burn-in there: if that fails, it is the node"
    if node.fault is not None:
        return "look for what these nodes share: a switch, a power unit, a rack"
    said = []
    if node.failing_days is not None:
        days = numbers.counted(node.failing_days, "more day")
        said.append(f"{days} with a failure would make it a lemon")
    if node.quiet_days is not None:
        said.append(f"{numbers.counted(node.quiet_days, 'quiet day')} would clear it")
    return ", ".join(said) or "look again in a week"


def _ticket(
    node: JudgedNode, rows: pd.DataFrame, reasons: tuple[str, ...], action: str, of: ClusterVerdicts
) -> str:
    """Text of a repair ticket: finding, evidence by time, what to do."""
    window = of.window
    period = f"{numbers.day(window.from_at)} to {numbers.day(window.to_at)}"
    place = of.places[of.places["node"] == node.node].iloc[0]
    where = ", ".join(f"{key} {place[key]}" for key in ("rack", "pod") if place[key])
    lines = [
        f"Node {node.node} of cluster {node.cluster}{f' ({where})' if where else ''}: lemon",
        f"{period} (UTC): {'; '.join(reasons)}.",
        f"To do: {action}.",
        "Records:",
    ]
    last = rows[rows["share"] >= 1].sort_values("day").tail(MOST_LINES)
    for day, signal, reason in last[["day", "signal", "reason"]].itertuples(index=False):
        at = window.at(day)
        kind = SAID[signal][0] if signal in SAID else "excluded by a user"
        what = f": {_short(of.titles.get(reason, reason))}" if isinstance(reason, str) else ""
        lines.append(f"- {moments.minute(at)} {kind}{what}")
    return "\n".join(lines)


def drain_command(node: str, why: str, *, uses_slurm: bool) -> str:
    """The line that takes a node out of service.

    >>> drain_command("n1", "incident 7", uses_slurm=True)
    "scontrol update NodeName=n1 State=DRAIN Reason='incident 7'"
    """
    name = shlex.quote(node)
    if not uses_slurm:
        return f"kubectl cordon {name}"
    return f"scontrol update NodeName={name} State=DRAIN Reason={shlex.quote(why)}"


def _codes(reason: str) -> list[str]:
    """What a record names; events of a day name several."""
    return reason.split(", ") if reason.startswith(("XID", "SXid")) else [_short(reason)]


def _short(reason: str) -> str:
    return shortened(one_line(reason), LONGEST)
