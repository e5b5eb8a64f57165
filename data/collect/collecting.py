"""Asks sources for what is new, reads it and writes down until when they were collected.

Files are fetched first, by a collector that holds no lock of the store; then they are read and
published at once, with the stretches of time that they are of. So whoever kills a collector loses
nothing: what was not published is asked for again.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from data.collect.slurm import cluster_name
from data.collect.source import Asking, Known, Window
from data.collect.written import (
    EMPTY,
    FAILED,
    ROWS,
    Answered,
    forget_repeated,
    known,
    name_command,
    rejected_before,
    remember_files,
    write_window,
)
from data.current import read_current
from data.disk_full import disk_full
from data.errors import DataError, EmptySourceError, SourceError, StoreError
from data.ingest import ingest
from data.ingest.reader import NoneKeptError, told_rejected
from data.ingest.readers import known_readers
from data.inside import LeftOutError
from data.publish import writer
from data.publish.lock import LOCK, locked
from data.site import load_site
from data.store import Store
from data.tables.table import UNNAMED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from data.collect.source import Fetched, Input, Settings, Source
    from data.ingest import IngestResult, Options
    from data.publish import StoreWriter

FOLDER = "collecting"
"""Of a store: holds what was fetched and is not read yet, and the lock of the collector."""
AT_ONCE_BYTES = 500_000_000
AT_ONCE_S = 60.0
"""How much is fetched, and for how long, before it is published: what a kill costs at most."""
FIRST_S = 5.0
TIMES_A_PUBLISH = 10
"""As long as there is little to lose it is published sooner, at a tenth of the time at most."""


@dataclass
class Outcome:
    """What became of one source."""

    settings: Settings
    collected_until: datetime | None = None
    results: list[IngestResult] = field(default_factory=list)
    n_windows: int = 0
    """Answers that were had: with records, or with none."""
    error: str | None = None
    """Why it is not collected until now."""
    told: list[str] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)
    """Records that could not be read, by reason; not those that an earlier answer held, too."""

    @property
    def told_rejected(self) -> str | None:
        """How many records could not be read and why; None where all could."""
        if not self.rejected:
            return None
        n_read = sum(each.rows_read for each in self.results)
        return f"{self.settings.name}: {told_rejected(self.rejected, n_read)}"

    @property
    def has_anything(self) -> bool:
        """Whether anything was had of it."""
        return bool(self.n_windows or self.results)

    @property
    def notices(self) -> list[str]:
        """What the user should know, each once."""
        read = (text for each in self.results if each.rows_read for text in each.notices)
        return [f"{self.settings.name}: {text}" for text in dict.fromkeys([*self.told, *read])]

    def fail(self, error: str) -> None:
        """Notes why; the first reason counts."""
        self.error = self.error or error


@dataclass(frozen=True)
class Collected:
    """What became of all sources."""

    outcomes: tuple[Outcome, ...]
    new_names: tuple[tuple[str, str, str, str], ...] = ()
    """What the publishes found of names of nodes."""


def collect(
    root: Path,
    sources: Sequence[Source],
    options: Options,
    *,
    now: datetime,
    since: datetime | None = None,
    wait_s: float = 0.0,
) -> Collected:
    """Asks each source for what is new and publishes it, the ledger too.

    A source that fails is told in its outcome, and the others go on. A long time is fetched piece
    by piece, and what was fetched in a minute is published.

    Parameters
    ----------
    since : datetime, optional
        Begin of what is asked for; None for where each source was collected until.
    wait_s : float
        How long another collector or writer is waited for.

    Raises
    ------
    StoreBusyError
        Where another one is still at it then.
    StoreError
        Where the store cannot be written, or holds the synthetic demo.
    """
    folder = root / FOLDER
    with locked(folder, wait_s):
        _empty(folder)
        try:
            collected = _Collector(root, options, now=now, since=since, wait_s=wait_s).run(sources)
        finally:
            _empty(folder)
    with suppress(OSError):  # one that was killed left it, or the next one has it by now
        folder.rmdir()
    return collected


@dataclass(frozen=True)
class _Piece:
    """What one source gave at once, not read yet; or why it gave nothing."""

    source: Source
    outcome: Outcome
    fetched: Fetched | None = None
    error: str = ""
    """Why it gave nothing; what it gave before is read."""

    def is_news(self, known: Known) -> bool:
        """Whether anything is to be written down of it."""
        found = self.fetched
        if found is None or found.window is not None or found.inputs or found.renamed:
            return True
        return found.there is not None and set(found.there) != {each.path for each in known.files}


class _Collector:
    """One run over all sources."""

    def __init__(
        self,
        root: Path,
        options: Options,
        *,
        now: datetime,
        since: datetime | None,
        wait_s: float,
    ) -> None:
        self._root, self._now, self._since, self._wait_s = root, now, since, wait_s
        current = read_current(root)
        if current is not None and current.synthetic:
            raise StoreError(
                f"{root}: holds the synthetic demo, which never mixes with real data: "
                "pass another --store"
            )
        self._is_new = current is None
        site = load_site(root)
        self._states_cluster = len(site.clusters) == 1
        self._options = replace(
            options,
            default_cluster=site.default_cluster,
            timezones=site.timezones,
            limits=site.limits,
        )
        self._known: dict[str, Known] = {}
        self._cluster: tuple[str | None] | None = None
        self._pieces: list[_Piece] = []
        self._since_publish = time.monotonic()
        self._publish_took_s = 0.0
        self._new_names: list[tuple[str, str, str, str]] = []

    def run(self, sources: Sequence[Source]) -> Collected:
        """Each source in turn; what is left is published with the ledger."""
        self._known = self._known_of(sources)
        outcomes = []
        for number, source in enumerate(sources):
            known = self._known[source.settings.name]
            outcome = Outcome(source.settings, known.until_at)
            outcomes.append(outcome)
            if source.settings.reader not in {*known_readers(), "auto"}:
                outcome.told.append(
                    f"left out: this version has no reader {source.settings.reader!r}"
                )
                continue
            try:
                self._fetch(source, outcome, self._root / FOLDER / str(number))
            except KeyboardInterrupt:  # ended by a person, cron or systemd: what was had stays
                self._publish()
                raise
        self._publish(last=True)
        return Collected(tuple(outcomes), tuple(self._new_names))

    def _known_of(self, sources: Sequence[Source]) -> dict[str, Known]:
        """What the store holds of each source."""
        if self._is_new:
            return {source.settings.name: Known() for source in sources}
        with closing(Store.open(self._root)) as store:
            return {source.settings.name: known(store, source.settings) for source in sources}

    def _fetch(self, source: Source, outcome: Outcome, folder: Path) -> None:
        """All that a source has, published between where that takes long."""
        folder.mkdir()
        asking = Asking(
            known=self._known[source.settings.name],
            now=self._now,
            since=self._since,
            folder=folder,
            limits=self._options.limits,
        )
        try:
            self._refuse_unknown_cluster(source, asking.known)
            for fetched in source.fetches(asking):
                if self._is_much():
                    self._publish()
                if outcome.error is not None:
                    return
                outcome.told += fetched.notices
                piece = _Piece(source, outcome, fetched)
                self._pieces += [piece] if piece.is_news(asking.known) else []
                told = fetched.inputs[0].called if fetched.inputs else fetched.asked
                self._options.progress(f"{source.settings.name}: {told}")
        except (DataError, OSError) as error:
            why = disk_full(error, folder) or error
            self._pieces.append(_Piece(source, outcome, error=str(why)))

    def _refuse_unknown_cluster(self, source: Source, known: Known) -> None:
        """Refuses records that name no cluster where Slurm does not say its own just now."""
        stated = source.settings.options.get("cluster") or self._states_cluster or known.clusters
        if source.settings.node is None or not source.of_slurm or stated:
            return
        if self._slurm_cluster() is None:
            raise SourceError(
                f"{source.settings.name}: which cluster its records are of is unknown, and "
                "`scontrol show config` does not say it: state [cluster.NAME] in site.toml, or "
                "cluster in the source's configuration"
            )

    def _slurm_cluster(self) -> str | None:
        """Name of the cluster of this host, asked once."""
        if self._cluster is None:
            self._cluster = (cluster_name(self._root / FOLDER, self._options.limits),)
        return self._cluster[0]

    def _is_much(self) -> bool:
        """Whether what was fetched should be published before more is."""
        n_bytes = sum(piece.fetched.n_bytes for piece in self._pieces if piece.fetched)
        took_s = time.monotonic() - self._since_publish
        at_once_s = min(AT_ONCE_S, max(FIRST_S, TIMES_A_PUBLISH * self._publish_took_s))
        return bool(self._pieces) and (n_bytes > AT_ONCE_BYTES or took_s > at_once_s)

    def _publish(self, *, last: bool = False) -> None:
        """Reads what was fetched and publishes it; a new store needs something that was had."""
        pieces, self._pieces = self._pieces, []
        if not pieces:
            return
        begun = time.monotonic()
        if self._is_new and not any(piece.fetched for piece in pieces):
            for piece in pieces:
                piece.outcome.fail(piece.error)
            return
        with writer(self._root, wait_s=self._wait_s) as building:
            for piece in pieces:
                self._read(building, piece)
            if self._is_new and not any(each.outcome.has_anything for each in pieces):
                return
            building.publish(self._options.progress, ledger=last)
            self._new_names += building.new_names
        self._is_new = False
        for piece in pieces:
            for each in piece.fetched.inputs if piece.fetched else ():
                if (self._root / FOLDER) in each.path.parents:
                    each.path.unlink(missing_ok=True)
        self._since_publish = time.monotonic()
        self._publish_took_s = self._since_publish - begun

    def _read(self, building: StoreWriter, piece: _Piece) -> None:
        """Reads what one source gave at once, and writes down its stretch of time."""
        outcome, fetched = piece.outcome, piece.fetched
        if fetched is None:
            outcome.fail(piece.error)
            self._write_failure(building, piece)
            return
        if outcome.error is not None and fetched.window is not None:
            return  # an answer before this one cannot be read
        results: list[IngestResult] = []
        done = list(fetched.renamed)
        for each in fetched.inputs:
            try:
                results += self._ingested(building, piece.source, outcome, each)
            except DataError as error:
                outcome.fail(str(error))
            else:
                done += [each.read] if each.read else []
        outcome.results += results
        if done or fetched.there is not None:
            remember_files(building, outcome.settings.name, done, fetched.there, self._now)
        if outcome.error is not None:
            self._write_failure(building, piece)
        elif fetched.window is not None:
            self._write_window(building, piece, fetched.window, results)

    def _ingested(
        self, building: StoreWriter, source: Source, outcome: Outcome, given: Input
    ) -> list[IngestResult]:
        """What became of one file; nothing of one that holds nothing, as a quiet source's."""
        settings = source.settings
        options = replace(self._options, **settings.options)
        if source.of_slurm and "cluster" not in settings.options:
            of_host = self._slurm_cluster()
            options = replace(
                options,
                default_cluster=of_host or self._fallback,
                default_stated=of_host is not None,
            )
        try:
            with _as_given(given) as path:
                result = ingest(building, settings.reader, str(path), options, called=given.called)
        except EmptySourceError:
            return []
        except NoneKeptError as error:
            if rejected_before(building, error.reader, error.rejected):
                return []  # an answer that overlaps this one held it, with others that were kept
            raise
        name_command(building, result.ingest_id)
        repeated = forget_repeated(building, result.ingest_id, result.source)
        outcome.rejected += Counter(result.rejected_by_reason) - repeated
        return [result]

    @property
    def _fallback(self) -> str:
        """Cluster of records of which nobody says it."""
        return self._options.default_cluster

    def _clusters(self, source: Source, results: Sequence[IngestResult]) -> Sequence[str | None]:
        """The clusters that a source brings, also where it is quiet just now.

        None where it names hosts alone, and no cluster knows any of them.
        """
        settings = source.settings
        if "cluster" in settings.options:
            return [settings.options["cluster"]]
        found = {cluster for each in results for cluster in each.clusters}
        found |= set(self._known[settings.name].clusters)
        if source.of_slurm:
            found |= set(filter(None, [self._slurm_cluster()]))
        reader = known_readers().get(settings.reader)
        nobody_knows = reader is not None and reader.cluster_by_host and not self._states_cluster
        return sorted(found - {UNNAMED} or found) or [None if nobody_knows else self._fallback]

    def _write_window(
        self,
        building: StoreWriter,
        piece: _Piece,
        window: Window,
        results: Sequence[IngestResult],
    ) -> None:
        """Writes down a stretch of time that was collected, in each cluster."""
        outcome = piece.outcome
        if window.from_at is None:  # only the records tell since when
            first = min((each.first_at for each in results if each.first_at), default=None)
            window = replace(window, from_at=min(first or window.until_at, window.until_at))
        n_rows = sum(each.rows_kept for each in results)
        for cluster in self._clusters(piece.source, results):
            row = self._row(piece, cluster, window)._replace(
                result=ROWS if n_rows else EMPTY, n_rows=n_rows
            )
            write_window(building, row)
        outcome.n_windows += 1
        before = outcome.collected_until
        outcome.collected_until = max(filter(None, (before, window.until_at)))

    def _write_failure(self, building: StoreWriter, piece: _Piece) -> None:
        """Writes down that a source could not be asked, and why."""
        outcome = piece.outcome
        window = Window(outcome.collected_until, self._now)
        for cluster in self._clusters(piece.source, ()):
            row = self._row(piece, cluster, window)
            write_window(building, row._replace(covers=None, error=outcome.error))

    def _row(self, piece: _Piece, cluster: str | None, window: Window) -> Answered:
        """What is written down of a stretch of time, as long as nothing came of it."""
        settings = piece.outcome.settings
        claims = settings.whole_cluster or settings.node is not None
        reader = known_readers().get(settings.reader)
        return Answered(
            source=settings.name,
            cluster=cluster,
            reader=settings.reader,
            covers=reader.covers if reader is not None and claims else None,
            node=settings.node,
            whole_cluster=settings.whole_cluster,
            from_at=window.from_at,
            until_at=window.until_at,
            collected_at=self._now,
            result=FAILED,
            n_rows=None,
            error=None,
            asked=piece.fetched.asked if piece.fetched else "",
        )


@contextmanager
def _as_given(given: Input) -> Iterator[Path]:
    """Where an input is read; refuses one that leads out of its folder since it was found."""
    if given.inside is None:
        yield given.path
        return
    try:
        held = given.inside.take(given.path, folders=True)
    except LeftOutError:
        raise SourceError(
            f"{given.called}: leads out of its folder by now: look who changed it"
        ) from None
    except OSError as error:
        raise SourceError(
            f"{given.called}: cannot be read ({error.strerror}): check access"
        ) from None
    with held:
        yield held.path


def _empty(folder: Path) -> None:
    """Removes what a collector left, all but the lock."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != LOCK:
            path.unlink(missing_ok=True)
