"""What became of my runs and jobs: why each ended, whose fault it was, what to do next?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from analytics.estimate import CONF_LEVEL
from analytics.failures.own_jobs import PREEMPTED, OwnJobs, how_ended, own_jobs, strongest
from analytics.failures.taxonomy import Cause
from app.answers.columns import KNOWN, columns
from app.answers.content import Answer, Missing, Number, Part, Table, composed, counted, estimated
from app.answers.efficiency import ettr
from app.answers.failures.taxonomy import taxonomy
from app.answers.reliability import sight
from app.ask import EVERYTHING, FEW
from app.words import domains, numbers, terms
from app.words.cells import Column
from app.words.glossary import of_efficiency
from app.words.plain import one_line, shortened
from data.queries import owners

if TYPE_CHECKING:
    import pandas as pd

    from analytics.efficiency.ettr import EttrReport
    from analytics.failures.taxonomy import Taxonomy
    from app.ask import Ask
    from data.filters import Selection
    from data.store import Store

NOT_FAILED = "no verdict: it did not fail"
NOTHING = Missing(
    "my_jobs",
    "No job of this user is in the selection.",
    "Choose a longer period or all of it, or reset the other filters.",
)
LONGEST = 160
"""Letters of a line of evidence in a table."""
MADE_ROOM = Cause(
    PREEMPTED,
    "Preempted: it made room for another job",
    "nobody",
    "scheduler",
    "user",
    "Nothing to mend: submit it with --requeue, so that it comes again, and save often enough.",
)
USERS = (
    replace(KNOWN["user"], link="user"),
    Column("n_attempts", "Attempts", "count"),
    Column("n_failed", "Failed", "count"),
    *columns("gpu_hours"),
    Column("last_at", "Latest end", "time", "UTC", none="none has ended"),
)
_LOST = replace(KNOWN["lost_gpu_hours"], title="Lost (GPU-h)", help=of_efficiency.LOST.definition)
_HELD = replace(KNOWN["gpu_hours"], title="Held (GPU-h)")
_EVIDENCE = Column("evidence", "Evidence", none="no record says why")
CAUSES = (
    Column("title", "Why they ended"),
    Column("action", "What to do next", px=545),
    Column("fault", "Whose fault"),
    Column("n_attempts", "Attempts", "count"),
    _LOST,
    _HELD,
    replace(KNOWN["job_id"], title="Latest job"),
    Column("owner", "Who acts", wide=True),
    replace(_EVIDENCE, title="Evidence of the latest"),
    replace(KNOWN["attempt"], wide=True),
    Column("last_at", "Latest", "time", "UTC", wide=True),
    *columns("cause", "cluster", wide=("cause", "cluster")),
)
JOBS = (
    *columns("job_id", "attempt", "end_at", "state"),
    Column("title", "Why it ended", none=NOT_FAILED),
    Column("fault", "Whose fault", none=NOT_FAILED),
    *columns("n_gpus"),
    _HELD,
    _LOST,
    Column("action", "What to do next", none="nothing", wide=True),
    replace(_EVIDENCE, wide=True),
    *columns("confidence", "node", "name", "run_id", "start_at", "account", "partition", "user",
             "cluster", "attempt_key",
             wide=("confidence", "node", "name", "run_id", "start_at", "account", "partition",
                   "user", "cluster", "attempt_key")),
)  # fmt: skip


@dataclass(frozen=True)
class MyRuns:
    """Jobs and runs of one user in a period."""

    about: pd.DataFrame
    """One row: user, first_at and last_at of all records."""
    jobs: OwnJobs
    ettr: EttrReport
    attempts: pd.DataFrame
    """The latest attempts, as `owners.user_attempts` has them."""
    blind: bool
    """Whether failures could be seen during none of the time."""

    @property
    def user(self) -> str:
        """The user as the records spell the name."""
        return str(self.about["user"].iloc[0])


def measured(
    store: Store,
    name: str,
    selection: Selection,
    *,
    limit: int = FEW,
    conf_level: float = CONF_LEVEL,
) -> MyRuns:
    """Jobs and runs of a user in the period; of attempts and runs at most `limit` are listed.

    Raises
    ------
    DataError
        Where no job has such a user, or several differ by letter case alone.
    LedgerMissingError
        Where the ledger, which joins attempts to runs, is not built.
    """
    user = owners.user_called(store, name)
    few = limit if limit <= FEW else None
    blind = sight.sight(store, selection).none
    attempts = _attempts(store, user, selection, blind=blind)
    of = own_jobs(attempts)
    return MyRuns(
        owners.about_user(store, user),
        of if of.n_interrupted or not blind else replace(of, lost_gpu_hours=None),
        ettr.measured(store, selection, user=user, limit=few, conf_level=conf_level),
        attempts.head(limit),
        blind,
    )


def _attempts(store: Store, user: str, selection: Selection, *, blind: bool) -> pd.DataFrame:
    """The attempts of a user, as `owners.user_attempts` has them, the latest first.

    Whether something else ended what failed without a cause is not known, nor what that lost.
    """
    rows = owners.user_attempts(store, user, selection)
    lost = rows["lost_gpu_hours"]
    unknown = blind | (rows["domain"].eq("unknown") & rows["bucket"].isna())
    return rows.assign(lost_gpu_hours=lost.mask(unknown & ~(lost > 0)))


def ended(
    store: Store, name: str, selection: Selection, how: str, *, limit: int = FEW
) -> pd.DataFrame:
    """The latest attempts of a user that ended in one way, as `how_ended` names it."""
    user, blind = owners.user_called(store, name), sight.sight(store, selection).none
    attempts = _attempts(store, user, selection, blind=blind)
    return how_ended(attempts, how).head(limit)


def answer(
    ask: Ask,
    name: str,
    selection: Selection,
    *,
    limit: int = FEW,
    shown: int = FEW,
    conf_level: float = CONF_LEVEL,
) -> Answer:
    """One user's jobs: why they ended, whose fault, what was lost, and what runs got.

    At most `limit` attempts and runs are read and in the record, `shown` of them in tables.
    """
    found = ask(measured, name, selection, limit=limit, conf_level=conf_level)
    if not found.jobs.n_attempts and not found.ettr.n_runs:
        return Answer(sentence(found), blocks=(NOTHING,), record=record(found))
    behind_cause = Part("Jobs that ended so", behind, (name, selection), columns=("cause",))
    causes = replace(by_cause(found.jobs, ask(taxonomy)), opens=behind_cause)
    everything = Part("Jobs", jobs, (name, selection), total=found.jobs.n_attempts)
    listed = replace(_jobs(found.attempts.head(shown), ask(taxonomy)), everything=everything)
    runs = replace(
        ettr.listed(
            ettr.by_run(found.ettr).head(shown), everything=Part("Runs", runs_of, (name, selection))
        ),
        empty="No run on several nodes: the ETTR is that of such runs.",
    )
    return Answer(
        sentence(found),
        _numbers(found, name, selection),
        (causes, runs, listed),
        found.ettr.notes if found.ettr.n_runs else (),
        record=record(found),
        sheet=found.attempts,
    )


NO_USERS = (
    "No job of this selection names its user. Choose a longer period or reset the filters; sacct "
    "names users where its --format has User."
)


def users(ask: Ask, selection: Selection, *, limit: int = EVERYTHING) -> Table:
    """Whose jobs there are, those who held most GPU-time first."""
    return _users(ask(owners.users, selection, limit=limit))


def _users(found: pd.DataFrame) -> Table:
    """Users, and why there are none."""
    return Table("users", "Users", USERS, found, NO_USERS)


def everyone(ask: Ask, selection: Selection, *, limit: int = FEW) -> Answer:
    """Whose jobs there are."""
    found = ask(owners.users, selection, limit=limit)
    several = f"{numbers.counted(len(found), 'user')} had jobs in this selection."
    return Answer(
        several if 0 < len(found) < limit else "",
        blocks=(replace(_users(found), everything=Part("Users", users, (selection,))),),
        record={"users": found},
        sheet=found,
    )


def jobs(ask: Ask, name: str, selection: Selection, *, limit: int = EVERYTHING) -> Table:
    """All attempts of a user, the latest first."""
    return _jobs(ask(measured, name, selection, limit=limit).attempts, ask(taxonomy))


def behind(
    ask: Ask, name: str, selection: Selection, how: str, *, limit: int = EVERYTHING
) -> Table:
    """The attempts behind a number or a cause."""
    rows = ask(ended, name, selection, how, limit=limit)
    return replace(_jobs(rows, ask(taxonomy)), key="jobs_behind")


def runs_behind(ask: Ask, name: str, selection: Selection, *, limit: int = EVERYTHING) -> Table:
    """The runs behind the ETTR."""
    return replace(runs_of(ask, name, selection, limit=limit), key="runs_behind")


def runs_of(ask: Ask, name: str, selection: Selection, *, limit: int = EVERYTHING) -> Table:
    """All runs of a user on several nodes, those with most GPU-time first."""
    return ettr.listed(ettr.by_run(ask(measured, name, selection, limit=limit).ettr))


def sentence(found: MyRuns) -> str:
    """How many failed, and whose fault it was."""
    of, user = found.jobs, found.user
    if not of.n_attempts:
        about = found.about.iloc[0]
        known = numbers.period(about["first_at"], about["last_at"], "UTC")
        return f"No job of {user} ended in this selection; the records of all are of {known}."
    attempts = numbers.counted(of.n_attempts, "attempt")
    if not of.n_failed:
        made_room = f", {of.n_preempted:,} made room for others" if of.n_preempted else ""
        return f"{user}: {attempts}, none of which failed{made_room}."
    by = of.by_domain
    shares = (
        (by["hardware"] + by["system_software"], "by the cluster"),
        (by["user"], "by the program"),
        (by["unknown"], "of unknown cause"),
    )
    whose = ", ".join(f"{n:,} {words}" for n, words in shares if n)
    hours = _at_least(of.lost_gpu_hours, of.n_lost_unknown)
    cost = f", interruptions lost {hours} GPU-hours" if of.lost_gpu_hours else ""
    return f"{user}: {of.n_failed:,} of {attempts} failed{cost}; {whose}."


def _numbers(found: MyRuns, name: str, selection: Selection) -> tuple[Number, ...]:
    """How many failed, how many of them by the cluster, what that cost, and the ETTR."""
    of = found.jobs

    def rows(how: str) -> Part:
        return Part("Jobs behind the number", behind, (name, selection, how))

    others = [
        f"{of.n_open:,} not ended" if of.n_open else "",
        f"{of.n_preempted:,} preempted" if of.n_preempted else "",
    ]
    told = " · ".join(f"{domains.title(name)} {n:,}" for name, n in of.by_domain.items() if n)
    not_own = of.by_domain["hardware"] + of.by_domain["system_software"]
    lost = (
        f"{numbers.counted(of.n_interrupted, 'interruption')}"
        if of.n_interrupted
        else "no interruption is known"
    )
    lost += f", {of.n_lost_unknown:,} of unknown loss" if of.n_lost_unknown else ""
    own = numbers.counted(of.by_domain["user"], "attempt")
    own += f", {of.n_own_unknown:,} of unknown size" if of.n_own_unknown else ""
    shown = [
        counted(of_efficiency.FAILED, of.n_failed, of=of.n_attempts, noun="attempts",
                basis=" · ".join(filter(None, others)) or "all ended", opens=rows("failed")),
        counted(of_efficiency.AT_FAULT, not_own, of=of.n_failed, noun="attempts",
                basis=told or "none failed", opens=rows("infrastructure"))
        if not_own or not found.blind
        else replace(sight.number(of_efficiency.AT_FAULT), opens=rows("infrastructure")),
        composed(of_efficiency.LOST, _at_least(of.lost_gpu_hours, of.n_lost_unknown), lost,
                 exact=of.lost_gpu_hours, unit="GPU-h", opens=rows("interrupted"))
        if of.n_interrupted or not found.blind
        else replace(sight.number(of_efficiency.LOST), opens=rows("interrupted")),
        composed(of_efficiency.OWN, _at_least(of.own_gpu_hours, of.n_own_unknown), own,
                 exact=of.own_gpu_hours, unit="GPU-h", opens=rows("own"))
        if of.by_domain["user"] or not found.blind
        else replace(sight.number(of_efficiency.OWN), opens=rows("own")),
    ]  # fmt: skip
    if found.ettr.n_runs:
        runs = Part("Runs behind the number", runs_behind, (name, selection))
        shown.append(estimated(terms.ETTR, "ettr", found.ettr.ettr, opens=runs))
    return tuple(shown)


def _at_least(hours: float | None, n_unknown: int) -> str:
    """A sum; where some of its parts are not known, a lower bound."""
    bound = "at least " if hours is not None and n_unknown else ""
    return f"{bound}{numbers.number(hours)}"


def by_cause(of: OwnJobs, known: Taxonomy) -> Table:
    """Why attempts ended early, whose fault it was, and what to do next."""
    rows = _explained(of.by_cause, known)
    empty = "No attempt failed or was preempted in this selection."
    return Table("causes", "What to do next", CAUSES, rows, empty)


def _jobs(attempts: pd.DataFrame, known: Taxonomy) -> Table:
    """Attempts with their reasons."""
    named = attempts.assign(
        cause=attempts["cause"].where(
            attempts["cause"].notna() | attempts["bucket"].isna(), PREEMPTED
        )
    )
    return Table("my_jobs", "Jobs", JOBS, _explained(named, known), "No job ended.")


def _explained(rows: pd.DataFrame, known: Taxonomy) -> pd.DataFrame:
    """Rows with title, fault, owner and action of their cause, and one line of evidence."""
    causes = {**known.causes, PREEMPTED: MADE_ROOM}
    cause, by = rows["cause"], {**domains.TITLES, MADE_ROOM.domain: MADE_ROOM.domain}
    domain = rows["domain"].where(cause.ne(PREEMPTED), MADE_ROOM.domain)
    return rows.assign(
        title=cause.map({name: each.title for name, each in causes.items()}).fillna(cause),
        fault=domain.map(by),
        action=cause.map({name: each.action for name, each in causes.items()}),
        owner=cause.map({name: each.owner for name, each in causes.items()}),
        evidence=rows["evidence"].map(_line),
    )


def _line(evidence: Any) -> str | None:
    """The strongest evidence on one line."""
    text = strongest(evidence)
    return None if text is None else shortened(one_line(text), LONGEST)


def record(found: MyRuns) -> dict[str, Any]:
    """The JSON of the command."""
    of, report = found.jobs, found.ettr
    return {
        "user": found.user,
        "attempts": of.n_attempts,
        "not_ended": of.n_open,
        "failed": of.n_failed,
        "preempted": of.n_preempted,
        "by_domain": dict(of.by_domain),
        "interrupted": of.n_interrupted,
        "lost_gpu_hours": of.lost_gpu_hours,
        "n_lost_unknown": of.n_lost_unknown,
        "own_gpu_hours": of.own_gpu_hours,
        "n_own_unknown": of.n_own_unknown,
        "by_cause": of.by_cause,
        "ettr": report.ettr,
        "n_runs": report.n_runs,
        "runs": ettr.by_run(report),
        "jobs": found.attempts,
        "notes": report.notes,
    }
