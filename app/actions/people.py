"""What people say: a cause, a note, a status; that they take it back; and who says it."""

from __future__ import annotations

import contextlib
import difflib
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from analytics.failures.taxonomy import taxonomy
from app.actions.arranging import checked_merge, checked_place
from data.audit import login
from data.errors import DataError
from data.published import require_current
from data.queries import targets
from data.said import INTO, OF
from data.site import load_site
from data.state import ACKNOWLEDGED, RESOLVED, RULE, SNOOZED_UNTIL, SWITCHED, Annotation, State
from data.store import Store

if TYPE_CHECKING:
    from pathlib import Path


FIELDS = ("cause", "note", "status")
"""What can be said about an attempt, an incident or a node."""
OF_KIND = {"incident": ("owner", "assignee", "remedy", INTO), "attempt": (OF,)}
"""What can be said besides of one of them alone."""
STATUSES = ("open", "acknowledged", "resolved")
LONGEST_NOTE = 10_000
"""Characters: every page of the target carries them."""
LONGEST_NAME = 100
"""Characters of an owner or assignee."""
_ACTION = re.compile(r"action:[a-z_]+-[0-9a-f]{12}")
LONGEST_SNOOZE = 366
"""Days."""
_SHOWN_BY = {
    "attempt": "`faultline failures --list` shows attempts",
    "incident": "`faultline incidents` shows them",
    "node": '`faultline sql "SELECT cluster, node FROM nodes"` shows them',
}


def annotate(
    root: Path, target: str, field: str, value: str, *, author: str | None = None
) -> Annotation:
    """Says the cause, a note or the status of an attempt, an incident or a node.

    It holds at once, in place of what was said of the same field before, until it is undone.

    Parameters
    ----------
    target : str
        `attempt:<cluster>/<attempt_key>`, `incident:<incident_id>` or `node:<cluster>/<node>`.
    field, value : str
        `cause` with one of the taxonomy or of the site, `status` with one of STATUSES, or `note`
        with text. Of an incident `owner` (a team), `assignee` (a person), `remedy` (what we do
        about it) with text, and `merged_into` with the id of the incident that it is the same as.
        Of an attempt `incident` with the id of the one that it is of, or `none`.
    author : str, optional
        Who says it; the login user where it is not given.

    Raises
    ------
    DataError
        Where the store has no such target, or the value is none of the field's.
    """
    kind = target.partition(":")[0]
    _require_field(kind, field)
    if field not in (INTO, OF):
        value = _checked(root, field, value)
    with contextlib.closing(Store.open(root)) as store:
        target = _known(store, target)
        if field in (INTO, OF):
            check = checked_merge if field == INTO else checked_place
            value = check(store, target.partition(":")[2], value.strip())
    return State(root).annotate(target, field, value, author=author or login())


def put_off(
    root: Path, target: str, *, days: int | None = None, author: str | None = None
) -> Annotation:
    """Acknowledges a row of the list of what to do, or snoozes it for some days; `undo` ends both.

    Parameters
    ----------
    target : str
        `incident:<incident_id>` or `action:<kind>-<hash>`, as `faultline actions` prints it.
    days : int, optional
        How long to hear no more of it; for good where it is not given.

    Raises
    ------
    DataError
        Where it is no such target, or the days are not 1 to 366.
    """
    if days is not None:
        return mute(root, target, days=days, author=author)
    return _say(root, target, *ACKNOWLEDGED, author=author)


def resolve(root: Path, target: str, *, author: str | None = None) -> Annotation:
    """Says that nothing of a row is left to do; of an alert that it is resolved.

    Raises
    ------
    DataError
        Where it is no such target.
    """
    return _say(root, target, *RESOLVED, author=author)


def mute(root: Path, target: str, *, days: float, author: str | None = None) -> Annotation:
    """Lets nobody hear of a row, an alert or a rule (`rule:<name>`) for some days.

    Raises
    ------
    DataError
        Where it is no such target, or the days are not above 0 and at most 366.
    """
    if not 0 < days <= LONGEST_SNOOZE:
        raise DataError(f"--days must be 1 to {LONGEST_SNOOZE}, got {days}: acknowledge it instead")
    until = datetime.now(UTC) + timedelta(days=days)
    return _say(root, target, SNOOZED_UNTIL, until.isoformat(timespec="seconds"), author=author)


def switch(root: Path, rule: str, *, on: bool, author: str | None = None) -> Annotation:
    """Switches a rule of alerts on or off, whatever site.toml says of it; `undo` takes it back.

    Raises
    ------
    DataError
        Where there is no such rule.
    """
    return _say(root, f"{RULE}{rule}", SWITCHED, "on" if on else "off", author=author)


def _say(root: Path, target: str, field: str, value: str, *, author: str | None) -> Annotation:
    """Writes down what somebody says of a row, an alert or a rule."""
    require_current(root)
    if not _ACTION.fullmatch(target) and not _is_rule(target):
        with contextlib.closing(Store.open(root)) as store:
            target = _known(store, target)
    return State(root).annotate(target, field, value, author=author or login())


def _is_rule(target: str) -> bool:
    """Whether a target is a rule; refuses one that there is not."""
    if not target.startswith(RULE):
        return False
    from app.alerts.asked import rule_of  # here: what people say of incidents asks no rule

    return bool(rule_of(target.removeprefix(RULE)))


def undo(root: Path, annotation_id: str, *, author: str | None = None) -> Annotation:
    """Takes an annotation back: what was said before it holds again.

    Raises
    ------
    DataError
        Where there is no such annotation, or it was undone before.
    """
    require_current(root)
    return State(root).undo(annotation_id, author=author or login())


def restore_said(root: Path, *, author: str | None = None) -> int:
    """Makes a lost state.sqlite anew with the annotations that the snapshot holds; how many.

    Raises
    ------
    DataError
        Where the file is there and sound.
    """
    with contextlib.closing(Store.without_said(root)) as store:
        held = store.rows(
            "SELECT annotation_id, target, author, strftime(made_at, '%Y-%m-%dT%H:%M:%S+00:00'), "
            "field, value FROM annotations ORDER BY made_at, annotation_id"
        )
        store_id = store.current.store_id
    State(root).restore_annotations(held, author=author or login(), store_id=store_id)
    return len(held)


def _known(store: Store, target: str) -> str:
    """The target as the store calls it; refuses one that it does not hold."""
    kind, colon, key = target.partition(":")
    named = next((known for known in targets.KINDS if known == kind), None)
    if named is None or not colon or not key:
        raise DataError(
            f"target {target!r} is none: write attempt:CLUSTER/KEY, incident:ID or "
            "node:CLUSTER/NODE"
        )
    own = targets.known(store, named, key)
    if own is not None:
        return f"{kind}:{own}"
    near = [f"{kind}:{found}" for found in targets.nearest(store, named, key)]
    remedy = f"did you mean {' or '.join(near)}?" if near else _SHOWN_BY[kind]
    raise DataError(f"{target}: the store holds no such {kind}: {remedy}")


def _require_field(kind: str, field: str) -> None:
    """Refuses a field that cannot be said of this kind of target, or of any."""
    own = {name: of for of, names in OF_KIND.items() for name in names}
    if field not in (*FIELDS, *own):
        raise DataError(
            f"field must be one of {', '.join((*FIELDS, *own))}, got {field!r}: name one"
        )
    if field in own and kind in targets.KINDS and kind != own[field]:
        raise DataError(f"{field} is said of an {own[field]} alone, not of a target {kind}:...")


def _checked(root: Path, field: str, value: str) -> str:
    """A value of the field; refuses any other."""
    longest = {"note": LONGEST_NOTE, "remedy": LONGEST_NOTE}
    longest |= {"owner": LONGEST_NAME, "assignee": LONGEST_NAME}
    if field in longest:
        if not value.strip() or len(value) > longest[field]:
            raise DataError(
                f"{field} holds 1 to {longest[field]:,} characters, got {len(value.strip()):,}: "
                "write it shorter, or undo the one that holds"
            )
        return value.strip()
    known = tuple(taxonomy(load_site(root).taxonomy).causes) if field == "cause" else STATUSES
    if value not in known:
        near = difflib.get_close_matches(value.lower().replace(" ", "_"), known, n=1)
        remedy = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
        raise DataError(f"{field} {value!r} is unknown: {remedy}")
    return value
