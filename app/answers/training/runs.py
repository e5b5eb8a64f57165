"""Which training runs logged their steps?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.answers.columns import columns
from app.answers.content import Answer, Missing, Table
from app.answers.training import fleet
from app.words import numbers
from app.words.cells import Column
from data.errors import DataError
from data.filters import Selection
from data.queries import training

if TYPE_CHECKING:
    import pandas as pd

    from app.ask import Ask
    from data.store import Store

COMMANDS = (
    "faultline ingest metrics.csv --job-id 4711",
    "faultline ingest events.out.tfevents.1700000000.host --job-id 4711",
    "faultline stability metrics.csv",
)
NO_RUN = Missing(
    "training_metrics",
    "no step of a training run is stored.",
    "They are read from CSV, JSON lines, TensorBoard, W&B, MLflow, MLPerf and job logs:",
    COMMANDS,
)
LIMITED = (
    f"The {training.MOST_RUNS:,} that did so last are listed: a shorter period shows the others."
)
RUNS = (
    Column("run_id", "Run", link="training"),
    *columns("cluster"),
    Column("first_step", "First step", "count"),
    Column("last_step", "Last step", "count"),
    Column("n_rows", "Rows", "count"),
    Column("n_attempts", "Attempts", "count"),
    Column("n_dumps", "Dumps of ranks", "count"),
    Column("last_loss", "Last loss", "number", none="no loss logged"),
    Column("first_at", "First logged", "time", none="no time logged"),
    Column("last_at", "Last logged", "time", none="no time logged"),
)


def listed(store: Store, selection: Selection) -> pd.DataFrame:
    """Runs that logged steps, the one that logged last first."""
    found = training.runs(store, selection)
    return found.assign(last_loss=found["last_loss"].where(found["n_loss"] > 0))


def cluster_of(store: Store, run_id: str, cluster: str | None) -> str:
    """The cluster of a run.

    Raises
    ------
    DataError
        Where no run of that name logged steps, or runs of several clusters did.
    """
    known = training.runs(store, Selection(cluster=cluster))
    found = known.loc[known["run_id"] == run_id, "cluster"].unique()
    if len(found) == 1:
        return str(found[0])
    if len(found) > 1:
        raise DataError(
            f"{', '.join(sorted(found))} have a run {run_id}: name one by --cluster NAME"
        )
    where = f" of cluster {cluster}" if cluster else ""
    some = ", ".join(known["run_id"].head(3)) or "none"
    raise DataError(f"no run {run_id}{where} logged its steps (runs that did: {some})")


def answer(ask: Ask, selection: Selection) -> Answer:
    """The runs of a selection that logged steps."""
    found = ask(listed, selection)
    count = numbers.counted(len(found), "run")
    sentence = f"{count} logged {'its' if len(found) == 1 else 'their'} steps or dumped ranks."
    table = Table("training_runs", "Runs that logged steps or dumped their ranks", RUNS, found)
    return Answer(
        sentence if len(found) else "No run logged its steps in this selection.",
        blocks=(table,) if len(found) else (NO_RUN,),
        notes=(LIMITED,) if len(found) == training.MOST_RUNS else (),
        record={"runs": found},
        sheet=found,
    )


def traces_of(store: Store, cluster: str, run_id: str) -> list[str]:
    """Straggler traces of a run, newest first, as their page names them."""
    found = fleet.traces(store, Selection(cluster=cluster))
    return [str(trace) for trace in found.loc[found["run_id"] == run_id, "trace"]]
