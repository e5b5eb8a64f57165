"""Which rank holds a hung job up, by the flight recorders and stacks of its ranks?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from analytics.training.hangs.stacks import standing
from analytics.training.hangs.verdict import hang
from app.answers.content import Answer, Chart, Missing, Number, Table, counted
from app.answers.described import Rows
from app.answers.training import hang_places, hang_rows, hang_words
from app.words import numbers
from app.words.cells import Column
from app.words.glossary import of_hangs
from data.errors import DataError
from data.queries import fleet as fleet_queries
from data.queries import hangs as queries
from data.queries import incidents

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from analytics.training.hangs.dump import RankDump
    from analytics.training.hangs.stacks import RankStack, Standing
    from analytics.training.hangs.verdict import Candidate, Hang
    from app.answers.content import Block
    from data.queries.hangs import DumpedAttempt
    from data.store import Store

NONE_STORED = Missing(
    "hangs",
    "No dump of a rank is stored.",
    "Let NCCL dump its flight recorder when an operation times out (TORCH_NCCL_TRACE_BUFFER_SIZE, "
    "TORCH_NCCL_DUMP_ON_TIMEOUT), and store the folder with its job:",
    (
        "faultline ingest flight-recorder /dumps --job-id 4711",
        "faultline hangs /dumps",
    ),
)


@dataclass(frozen=True)
class Judged:
    """What the dumps of one job show."""

    hang: Hang | None
    """None where only stacks were read."""
    standing: Standing | None
    """None where no stack was read."""
    places: hang_places.Places
    attempt: DumpedAttempt | None = None
    incident: tuple[str, str] | None = None
    """Id and summary of the incident of the attempt."""
    notices: tuple[str, ...] = field(default=())
    """Of files that could not be read."""
    n_rejected: int = 0
    """Files and operations that could not be read."""

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """Ranks at fault, or among which it is."""
        return () if self.hang is None else self.hang.candidates

    @property
    def is_by_stacks(self) -> bool:
        """Whether stacks alone tell a rank: no recorder was read, or none of them names one."""
        if self.hang is None:
            return True
        return not self.hang.candidates and bool(self.standing and self.standing.outliers)

    @property
    def verdict(self) -> str:
        """By flight recorders; by stacks where these tell of no rank."""
        if self.hang is not None and not self.is_by_stacks:
            return self.hang.verdict
        n_outliers = len(self.standing.outliers) if self.standing else 0
        return ("cannot be judged", "found")[n_outliers] if n_outliers < 2 else "ambiguous"

    @property
    def ranks(self) -> tuple[int, ...]:
        """Those ranks."""
        if self.hang is not None and not self.is_by_stacks:
            return self.hang.ranks
        return self.standing.outliers if self.standing else ()


def of_files(names: Sequence[str], *, partial: bool = False) -> Judged:
    """What dumps in files and folders show.

    Raises
    ------
    DataError
        Where none can be read.
    """
    from data.ingest.readers.training.rank_dumps import read_all

    read = read_all(names, partial=partial)
    dumps = read.last()
    stacks = {stack.rank: stack for _, stack in reversed(read.stacks)}
    found = _judged(dumps, list(stacks.values()))
    return Judged(
        *found,
        hang_places.places({dump.rank: dump for dump in dumps}, None),
        notices=tuple(read.notices),
        n_rejected=read.rejected.total,
    )


def of_attempt(store: Store, attempt: DumpedAttempt) -> Judged:
    """What the stored dumps of an attempt show, with its nodes and its incident."""
    dumps, stacks = queries.dumps_of(store, attempt)
    found = _judged(dumps, stacks)
    names = fleet_queries.own_names(store, attempt.cluster)
    incident = None
    if attempt.attempt_key is not None:
        rows = incidents.of_attempt(store, attempt.cluster, attempt.attempt_key)
        if len(rows):
            incident = str(rows["incident_id"].iloc[0]), str(rows["summary"].iloc[0])
    by_rank = {dump.rank: dump for dump in dumps}
    return Judged(
        *found,
        hang_places.places(by_rank, attempt, names),
        attempt,
        incident,
        n_rejected=sum(dump.n_unread for dump in dumps),
    )


def of_job(store: Store, job_id: str, cluster: str | None = None) -> Judged:
    """The same of the last attempt of a job of which dumps are stored.

    Raises
    ------
    DataError
        Where the store has no dump of it.
    """
    found = queries.attempts(store, job_id=job_id, cluster=cluster)
    if not found:
        known = sorted({each.job_id for each in queries.attempts(store, cluster=cluster)})
        has = f"it has those of {', '.join(known[:10])}" if known else "it has none of any job"
        raise DataError(
            f"the store has no dump of job {job_id!r}, {has}: store them with "
            f"`faultline ingest flight-recorder DIR --job-id {job_id}`"
        )
    clusters = sorted({each.cluster for each in found})
    if len(clusters) > 1:
        raise DataError(
            f"job {job_id!r} has dumps in {', '.join(clusters)}: choose one with --cluster"
        )
    return of_attempt(store, found[0])


def of_run(store: Store, cluster: str, run_id: str) -> Judged | None:
    """The same of the last attempt of a run; None where no dump of it is stored."""
    found = queries.attempts(store, cluster=cluster, run_id=run_id)
    return of_attempt(store, found[0]) if found else None


def _judged(
    dumps: Sequence[RankDump], stacks: Sequence[RankStack]
) -> tuple[Hang | None, Standing | None]:
    framed = [stack for stack in stacks if stack.frames]
    return (hang(dumps) if dumps else None, standing(framed) if framed else None)


def answer(judged: Judged | None) -> Answer:
    """Who holds the job up, how sure that is, and what shows it."""
    if judged is None:
        return Answer("Whether a rank held the run up cannot be judged: no dump is stored.",
                      blocks=(NONE_STORED,), record=None)  # fmt: skip
    rows = _candidates(judged)
    return Answer(
        _sentence(judged),
        tuple(_headlines(judged)),
        tuple(_blocks(judged, rows)),
        notes=tuple(_notes(judged)),
        record=_record(judged, rows),
        sheet=rows.sheet(),
    )


def _sentence(judged: Judged) -> str:
    if judged.hang is None:
        return _by_stacks(judged.standing)
    said = hang_words.sentence(judged.hang, judged.places.told)
    return f"{said} {_by_stacks(judged.standing)}" if judged.is_by_stacks else said


def _by_stacks(found: Standing | None) -> str:
    """Which ranks stand elsewhere than most."""
    if found is None or found.dominant is None:
        return "Which rank holds the job up cannot be judged: no function holds most of the ranks."
    if not found.outliers:
        return f"Which rank holds the job up cannot be judged: all ranks stand in {found.dominant}."
    who = hang_words.named(found.outliers).capitalize()
    verb = "stands" if len(found.outliers) == 1 else "stand"
    return (
        f"{who} {verb} elsewhere than the {found.n_dominant:,} ranks in {found.dominant}: by "
        "stacks alone that is a hint."
    )


def _headlines(judged: Judged) -> Iterator[Number]:
    if judged.hang is None:
        return
    progress = judged.hang.progress
    unseen = len(progress.unseen)
    if progress.guessed:
        seen = f"{len(progress.dumps):,}"
        yield Number(of_hangs.RANKS_SEEN, seen, "no dump states how many there are")
    else:
        yield counted(
            of_hangs.RANKS_SEEN, len(progress.dumps), of=len(progress.world), noun="ranks",
            basis=f"{unseen:,} without a dump" if unseen else "all that the dumps name",
        )  # fmt: skip
    waiting = len(judged.hang.waiting)
    if waiting or not (progress.unread or progress.blind):
        yield counted(of_hangs.RANKS_WAITING, waiting, of=len(progress.dumps), noun="ranks")
    else:
        yield Number(of_hangs.RANKS_WAITING, numbers.UNKNOWN, "not all operations were seen")
    if judged.verdict in ("none", "cannot be judged"):
        yield Number(
            of_hangs.HANG_AT_FAULT, numbers.UNKNOWN if judged.verdict != "none" else "none"
        )
        return
    yield Number(
        of_hangs.HANG_AT_FAULT,
        hang_words.ranks(judged.ranks),
        "by stacks alone"
        if judged.is_by_stacks
        else f"confidence {judged.candidates[0].confidence}"
        if len(judged.candidates) == 1
        else f"one of {numbers.counted(len(judged.candidates), 'candidate')}",
    )


def _candidates(judged: Judged) -> Rows:
    if judged.hang is None:
        return Rows(hang_rows.CANDIDATES, [])
    found = hang_rows.candidates(judged.hang.progress, judged.candidates, judged.places)
    return Rows(hang_rows.CANDIDATES, list(found))


def _blocks(judged: Judged, candidates: Rows) -> Iterator[Block]:
    found = judged.hang
    if found is not None:
        if found.candidates:
            title = "The rank at fault" if len(found.candidates) == 1 else "One of these"
            yield candidates.table("candidates", title)
            lines = [(line,) for line in dict.fromkeys(hang_words.evidence(found))]
            yield Table("evidence", "What shows it", (Column("line", "Evidence"),), lines,
                        wrapped=True)  # fmt: skip
        says = "Last ended collective of each rank by process group, behind the furthest of it"
        yield Chart("training.hang_progress", "How far is each rank?", says,
                    (found.progress, found.ranks), whole=True)  # fmt: skip
        nobody = found.verdict == "none"
        yield Rows(hang_rows.WAITS, hang_rows.waits(found)).table(
            "waits",
            "Who waits for whom",
            empty="Nobody waits."
            if nobody
            else "No wait was seen of which the other ranks are known.",
        )
        rows = Rows(hang_rows.PROGRESS, list(hang_rows.progress_rows(found.progress)))
        yield rows.table("progress", "How far each group is")
    if judged.standing is not None:
        yield Rows(hang_rows.STACKS, hang_rows.stacks(judged.standing)).table(
            "stacks", "Where the ranks stand"
        )


def _notes(judged: Judged) -> Iterator[str]:
    """What was not seen, and what the verdict takes for granted."""
    if judged.n_rejected:
        yield f"{numbers.counted(judged.n_rejected, 'record')} could not be read."
    if judged.hang is not None:
        yield from _unseen(judged.hang)
    if judged.hang is not None:
        named = judged.hang.candidates
        yield (
            "Waits outside of the recorder (Gloo, a store, files) are not seen"
            + (": the rank named is the first that the recorder sees." if named else ".")
        )
        yield from _standing(judged)
    if judged.places.basis and judged.ranks:
        yield judged.places.basis
    if judged.incident is not None:
        yield f"The attempt belongs to incident {judged.incident[0]}: {judged.incident[1]}"


def _standing(judged: Judged) -> Iterator[str]:
    """What stacks show beside the recorder."""
    found = judged.standing
    if found is None or judged.is_by_stacks:
        return
    if found.outliers:
        verb = "stands" if len(found.outliers) == 1 else "stand"
        yield (
            f"By stacks {hang_words.named(found.outliers)} {verb} elsewhere than most, who are in "
            f"{found.dominant}."
        )
    elif found.dominant is not None:
        yield f"By stacks all ranks stand in {found.dominant}."


def _unseen(found: Hang) -> Iterator[str]:
    """What the dumps do not hold."""
    progress = found.progress
    if progress.unseen:
        yield (
            f"No dump of {hang_words.named(progress.unseen)}: a rank without a dump may be the one "
            "that is missing."
        )
    if progress.blind:
        yield f"The dump of {hang_words.named(progress.blind)} holds no operation."
    if progress.unread:
        yield f"The dump of {hang_words.named(progress.unread)} has operations that were not read."
    if progress.guessed:
        yield "No dump states which ranks the job has: one that was not seen may be missing."
    if progress.adrift:
        yield (
            f"{hang_words.named(progress.adrift).capitalize()} enqueued operations that did not "
            "end and of which no dump tells the other ranks."
        )
    if found.wrapped:
        yield (
            f"The ring of {hang_words.named(found.wrapped)} was overwritten: their oldest "
            "operations are not seen."
        )
    if progress.unplaced:
        yield (
            f"No dump states the ranks of {', '.join(progress.unplaced)}: these groups are not "
            "judged."
        )


def _record(judged: Judged, candidates: Rows) -> dict[str, Any]:
    found, attempt = judged.hang, judged.attempt
    first = judged.candidates[0] if judged.candidates else None
    progress = found.progress if found else None
    nodes: Mapping[int, str] = judged.places.node_of
    by_stacks = judged.is_by_stacks and bool(judged.ranks)
    return {
        "verdict": judged.verdict,
        "ranks": list(judged.ranks),
        "kind": first.kind if first else "stands elsewhere" if by_stacks else None,
        "collective": hang_words.operation(progress, first.step) if first and progress else None,
        "seq": first.step.seq if first else None,
        "process_group": hang_words.group(first.step.group) if first else None,
        "process_group_ranks": list(first.step.group.ranks) if first else [],
        "confidence": first.confidence if first else "low" if by_stacks else None,
        "reason": _reason(judged),
        "nodes": sorted({nodes[rank] for rank in judged.ranks if rank in nodes}),
        "candidates": candidates.records(),
        "evidence": list(dict.fromkeys(hang_words.evidence(found))) if found else [],
        "waits": hang_rows.waits(found) if found else [],
        "progress": list(hang_rows.progress_rows(progress)) if progress else [],
        "n_ranks": len(progress.world) if progress and not progress.guessed else None,
        "n_dumps": len(progress.dumps) if progress else 0,
        "ranks_without_dump": list(progress.unseen) if progress else [],
        "ranks_wrapped": list(found.wrapped) if found else [],
        "stacks": hang_rows.stacks(judged.standing) if judged.standing else [],
        "cluster": attempt.cluster if attempt else None,
        "job_id": attempt.job_id if attempt else None,
        "attempt": attempt.attempt if attempt else None,
        "incident_id": judged.incident[0] if judged.incident else None,
        "n_rejected": judged.n_rejected,
    }


def _reason(judged: Judged) -> str:
    """Why the verdict is what it is; empty where nothing hangs."""
    if judged.hang is None or judged.is_by_stacks:
        return "stacks alone"
    named = judged.hang.candidates
    return judged.hang.why or (named[0].reason if named else "")
