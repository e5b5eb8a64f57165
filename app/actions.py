"""What a person does to a store: ingest files, build the demo, say a cause. Never cached."""

from __future__ import annotations

import contextlib
import difflib
import getpass
import os
import re
import time
import zoneinfo
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from analytics.failures.taxonomy import taxonomy
from data.current import read_current
from data.errors import DataError, StoreError
from data.ingest import IngestResult, Options, ingest, readers, store_files
from data.publish import writer
from data.queries import efficiency, targets
from data.saved_queries import SavedQueries, SavedQuery
from data.site import load_site
from data.state import Annotation, State
from data.store import Store, require_current

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from data.publish import StoreWriter
    from data.synthetic import DemoSpec, DemoTruth
    from data.synthetic.traces import PlantedTrace

__all__ = [
    "FIELDS",
    "STATUSES",
    "Annotation",
    "DemoBuilt",
    "IngestResult",
    "Options",
    "annotate",
    "build_demo",
    "build_ledger",
    "checked_zone",
    "delete_query",
    "ingest_files",
    "names_ledger",
    "remember_query",
    "rename_query",
    "restore_query",
    "save_query",
    "sources",
    "undo",
]

FIELDS = ("cause", "note", "status")
"""What can be said about an attempt, an incident or a node."""
STATUSES = ("open", "acknowledged", "resolved")
LONGEST_NAME = 80
"""Characters of the name of a saved query."""
LONGEST_NOTE = 10_000
"""Characters: every page of the target carries them."""
_OF_LEDGER = re.compile(r"\b(gpu_time|job_runs)\b", re.IGNORECASE)
"""Tables that are built on demand."""
_SHOWN_BY = {
    "attempt": "`faultline failures --list` shows attempts",
    "incident": "`faultline incidents` shows them",
    "node": '`faultline sql "SELECT cluster, node FROM nodes"` shows them',
}


@dataclass(frozen=True)
class DemoBuilt:
    """A demo store that was built."""

    jobs: int
    nodes: int
    days: float
    seconds: float
    truth: DemoTruth


def sources() -> dict[str, str]:
    """Names of the sources that can be ingested, each with a line of help."""
    return {name: module.HELP for name, module in readers().items()}


def ingest_files(
    root: Path,
    source: str,
    names: Sequence[str],
    options: Options,
    *,
    called: Mapping[str, str] | None = None,
    author: str | None = None,
) -> tuple[list[IngestResult], list[str]]:
    """Reads files into the store and publishes once; results, and what could not be read.

    `called` says what people call a file, where that is not its path.

    Raises
    ------
    DataError
        Where nothing could be read from any of them: the store is untouched.
    """
    site = load_site(root)
    options = replace(options, default_cluster=site.default_cluster, timezones=site.timezones)
    results: list[IngestResult] = []
    errors: list[str] = []
    with writer(root) as building:
        _refuse_synthetic(building.synthetic, root)
        for name in names:
            try:
                shown = (called or {}).get(name)
                results.append(ingest(building, source, name, options, called=shown))
            except DataError as error:
                errors.append(str(error))
        if not results:
            raise DataError("; ".join(errors))
        building.publish(options.progress)
    for result in results:
        State(root).record(
            author or _login(),
            "ingest",
            {"ingest_id": result.ingest_id, "source": result.source, "path": result.path},
        )
    return results, errors


def build_demo(
    root: Path, spec: DemoSpec, progress: Callable[[str], None] = lambda message: None
) -> DemoBuilt:
    """Builds the synthetic cluster's store anew; refuses a store that holds real data."""
    from data.synthetic import demo_cluster

    begin = time.monotonic()
    with writer(root, fresh=True) as building:
        if read_current(root) is not None and not building.synthetic:
            raise StoreError(
                f"{root}: holds real data: the demo goes elsewhere, e.g. --store ./demo-store"
            )
        demo = demo_cluster(spec, progress)
        progress("storing")
        building.load(demo.tables)
        _load_traces(building, demo.traces)
        building.publish(progress, ledger=True)
    State(root).record(_login(), "demo", {"seed": spec.seed, "jobs": spec.n_jobs})
    seconds = time.monotonic() - begin
    return DemoBuilt(spec.n_jobs, spec.n_nodes, spec.days, seconds, demo.truth)


def build_ledger(root: Path, progress: Callable[[str], None] = lambda message: None) -> bool:
    """Builds the ledger of the present records, where it is not built; whether it had to be."""
    if _has_ledger(root):
        return False
    with writer(root) as building:
        if _has_ledger(root):  # another built it while we waited
            return False
        building.publish_ledger(progress)
    return True


def names_ledger(sql: str) -> bool:
    """Whether a query names what the ledger fills; one that only seems to costs a build.

    >>> names_ledger('SELECT sum(gpu_seconds) FROM "GPU_TIME"'), names_ledger("FROM jobs")
    (True, False)
    """
    return _OF_LEDGER.search(sql) is not None


def _has_ledger(root: Path) -> bool:
    """Whether the ledger rests on what the store holds now."""
    with contextlib.closing(Store.open(root)) as store:
        return efficiency.has_ledger(store)


def _load_traces(building: StoreWriter, traces: Sequence[PlantedTrace]) -> None:
    """Stores the demo's straggler traces as if they had been ingested."""
    from data.ingest.straggler_meta import TraceMeta
    from data.ingest.straggler_rows import rows_of
    from data.ingest.straggler_trace import trace_batch

    for trace in traces:
        shape = trace.shape
        meta = TraceMeta(
            trial_name=trace.name,
            run_id=None,
            dp_size=shape.dp,
            pp_size=shape.pp,
            tp_size=shape.tp,
            dsp_size=shape.dsp,
            vpp_size=shape.vpp,
            world_size=shape.dp * shape.pp * shape.tp * shape.dsp,
        )
        options = Options(job_id=trace.job_id)
        batch = trace_batch(rows_of(trace.columns), meta, name=trace.name, options=options)
        building.load(batch.tables)
        store_files(building, batch)


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
        with text.
    author : str, optional
        Who says it; the login user where it is not given.

    Raises
    ------
    DataError
        Where the store has no such target, or the value is none of the field's.
    """
    checked = _checked(root, field, value)
    with contextlib.closing(Store.open(root)) as store:
        _refuse_unknown(store, target)
    return State(root).annotate(target, field, checked, author=author or _login())


def undo(root: Path, annotation_id: str, *, author: str | None = None) -> Annotation:
    """Takes an annotation back: what was said before it holds again.

    Raises
    ------
    DataError
        Where there is no such annotation, or it was undone before.
    """
    require_current(root)
    return State(root).undo(annotation_id, author=author or _login())


def save_query(root: Path, name: str, sql: str, *, author: str | None = None) -> SavedQuery:
    """Saves a query under a name, for everybody who sees the store.

    Raises
    ------
    DataError
        Where the query is empty, or the name is empty, too long or taken.
    """
    if not sql.strip():
        raise DataError("there is no query to save: write one first")
    return SavedQueries(root).save(_named(name), sql, author=author or _login())


def rename_query(root: Path, query_id: str, name: str, *, author: str | None = None) -> None:
    """Gives a saved query another name; refuses one that is empty, too long or taken."""
    SavedQueries(root).rename(query_id, _named(name), author=author or _login())


def delete_query(root: Path, query_id: str, *, author: str | None = None) -> None:
    """Takes a saved query from the list; `restore_query` brings it back."""
    SavedQueries(root).delete(query_id, author=author or _login())


def restore_query(root: Path, query_id: str, *, author: str | None = None) -> None:
    """Brings a deleted query back."""
    SavedQueries(root).restore(query_id, author=author or _login())


def remember_query(root: Path, sql: str, outcome: str, *, author: str) -> None:
    """Adds a query to those that a person asked."""
    SavedQueries(root).remember(sql, outcome, author=author)


def _named(name: str) -> str:
    """A name of a saved query."""
    name = " ".join(name.split())
    if not 0 < len(name) <= LONGEST_NAME:
        raise DataError(f"a name holds 1 to {LONGEST_NAME} characters, got {len(name)}")
    return name


def _refuse_unknown(store: Store, target: str) -> None:
    """Refuses a target that the store does not hold."""
    kind, colon, key = target.partition(":")
    named = next((known for known in targets.KINDS if known == kind), None)
    if named is None or not colon or not key:
        raise DataError(
            f"target {target!r} is none: write attempt:CLUSTER/KEY, incident:ID or "
            "node:CLUSTER/NODE"
        )
    if targets.exists(store, named, key):
        return
    near = [f"{kind}:{found}" for found in targets.nearest(store, named, key)]
    remedy = f"did you mean {' or '.join(near)}?" if near else _SHOWN_BY[kind]
    raise DataError(f"{target}: the store holds no such {kind}: {remedy}")


def _checked(root: Path, field: str, value: str) -> str:
    """A value of the field; refuses any other."""
    if field == "note":
        if not value.strip() or len(value) > LONGEST_NOTE:
            raise DataError(
                f"a note holds 1 to {LONGEST_NOTE:,} characters, got {len(value.strip()):,}: "
                "write it shorter, or undo the one that holds"
            )
        return value.strip()
    if field not in FIELDS:
        raise DataError(f"field must be one of {', '.join(FIELDS)}, got {field!r}: name one")
    known = tuple(taxonomy(load_site(root).taxonomy).causes) if field == "cause" else STATUSES
    if value not in known:
        near = difflib.get_close_matches(value.lower().replace(" ", "_"), known, n=1)
        remedy = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
        raise DataError(f"{field} {value!r} is unknown: {remedy}")
    return value


def _login() -> str:
    """The user who runs this process; by number where the system knows no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without an entry in passwd
        return f"uid {os.getuid()}"


def _refuse_synthetic(synthetic: bool, root: Path) -> None:
    """Real data never goes into a demo store."""
    if synthetic:
        raise StoreError(
            f"{root}: holds the synthetic demo, which never mixes with real data: "
            "pass another --store"
        )


def checked_zone(name: str | None) -> str | None:
    """An IANA zone by name; refuses one that does not exist."""
    if name is not None and name not in zoneinfo.available_timezones():
        raise DataError(f"time zone {name!r} is unknown: use an IANA name, e.g. Europe/Berlin")
    return name
