"""Why an attempt failed: evidence from several sources weighed into one verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analytics.failures.evidence import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from analytics.arrays import Bools, Floats
    from analytics.failures.precedence import Weights

STATED = {"TIMEOUT": "time_limit", "DEADLINE": "time_limit", "OUT_OF_MEMORY": "host_oom"}
"""States in which the scheduler itself states the cause."""
LOST = {"NODE_FAIL": "node_lost", "BOOT_FAIL": "node_lost"}
"""States in which the scheduler lost a node: no cause, and not the program's doing."""
_REST = {"REQUEUED": "requeued"}
"""States that say what became of an attempt, where nothing tells its cause."""
CRASH_SIGNALS = (4, 6, 8, 11)
"""SIGILL, SIGABRT, SIGFPE, SIGSEGV: the program ended by its own fault."""
BIN_S = 5.0
"""Width of the bins in which offsets of a clock are counted."""
AGREEING = 3
"""Lines that must agree on the error of a clock."""


@dataclass(frozen=True)
class Verdicts:
    """Verdicts of attempts, and what each rests on."""

    verdicts: pd.DataFrame
    """Columns attempt, symptom, domain, cause, confidence, method, node."""
    evidence: pd.DataFrame
    """The evidence given, with `role` (cause: of the verdict; other: of another cause, or of none
    that has enough; consequence, excluded, context) and `why`."""
    alternatives: pd.DataFrame
    """Columns attempt, cause, confidence, reason: other causes, the most likely first."""


def attribute(attempts: pd.DataFrame, evidence: pd.DataFrame, table: Weights) -> Verdicts:
    """The most likely cause of each failed attempt.

    Evidence k of attempt i speaks for a cause c with odds w_k, unless it is a coincidence: it is
    none with probability a_k (`causal_ratio`). It then names the cause with probability
    a_k w_k / (1 + w_k), which is odds of w_ik = a_k w_k / (1 + (1 - a_k) w_k). Within one kind of
    source the strongest counts, over kinds odds add: o_ic = sum over kinds of max_k w_ik. The share
    of a cause is p_ic = o_ic / (1 + sum_c o_ic), and 1 / (1 + sum_c o_ic) is that of "none of
    these".
    A domain is named where its causes together hold at least half; the cause is the strongest of
    that domain, its `confidence` p_ic. Otherwise the verdict is unknown.

    Before that, differential diagnosis: a lost node excludes the program; an error that only the
    program can make excludes everything else; a proximate cause (a collective's timeout, a GPU
    off the bus, a lost node) gives way to a cause that explains it; a kernel line about one
    process belongs to the one attempt that it names or that ended nearest to it.

    Parameters
    ----------
    attempts : DataFrame
        Columns attempt (int, unique), state, exit_signal, failed_node (None where unknown),
        only_node (the node of a single-node attempt, else None).
    evidence : DataFrame
        Columns attempt, kind (health_event, node_event, job_log, scheduler), key, node, offset_s
        (time of the evidence minus end of the attempt, NaN where unknown), cause, odds, scope
        (node or process), job_named (True where the evidence names this attempt's job, False
        another, None none), causal_ratio (in [0, 1]), cluster (which clock); further columns are
        kept.
    table : Weights
        From `analytics.failures.precedence.weights`.

    Returns
    -------
    Verdicts
        One verdict an attempt. A lost node without evidence is cause ``node_lost``, domain
        ``unknown``, confidence 0.

    Notes
    -----
    Misleads where a source covers part of the fleet only: a cause that nothing observes cannot be
    named. Shares are weights, not frequencies: the confusion with confirmed causes calibrates
    them.

    References
    ----------
    Window and the principle that a symptom excludes domains: Kokolis et al., arXiv 2410.21680,
    Table I and section on attribution. Weights: `attribution.toml`.

    Examples
    --------
    >>> from analytics.failures.precedence import weights
    >>> attempts = pd.DataFrame({"attempt": [0, 1], "state": ["NODE_FAIL", "NODE_FAIL"],
    ...     "exit_signal": [0, 0], "failed_node": ["a", "b"], "only_node": ["a", "b"]})
    >>> evidence = pd.DataFrame({"attempt": [0], "kind": ["health_event"], "key": ["e1"],
    ...     "node": ["a"], "offset_s": [-20.0], "cause": ["nvlink"], "odds": [30.0],
    ...     "scope": ["node"], "job_named": [None], "causal_ratio": [1.0], "cluster": ["a"]})
    >>> found = attribute(attempts, evidence, weights()).verdicts
    >>> found[["cause", "domain", "method"]].values.tolist()
    [['nvlink', 'hardware', 'health_event'], ['node_lost', 'unknown', 'none']]
    """
    attempts = attempts.reset_index(drop=True)
    stated = _of_state(attempts, table)
    if evidence.empty and not stated:
        return _bare(attempts, table)
    place = pd.Series(attempts.index, index=attempts["attempt"])
    rows = _stacked([pd.DataFrame(part) for part in (evidence, stated) if len(part)])
    rows["row"] = rows["attempt"].map(place).astype("int64")
    rows = _weighed(rows, attempts, table)
    shares = _shares(rows, table)
    return _verdicts(attempts, rows, shares, table)


def _stacked(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """Rows of the parts, with the columns of any: where all of one is unknown, pandas would look at
    each of its values."""
    kinds = {name: part[name].dtype for part in reversed(parts) for name in part}
    pieces = {
        name: [
            part[name].to_numpy()
            if name in part
            else np.full(len(part), None, dtype=float if kind.kind == "f" else object)
            for part in parts
        ]
        for name, kind in kinds.items()
    }
    return pd.DataFrame({name: np.concatenate(each) for name, each in pieces.items()})


def _of_state(attempts: pd.DataFrame, table: Weights) -> list[dict[str, object]]:
    """What the scheduler itself says, as pieces of evidence."""
    same = {"kind": "scheduler", "key": "", "node": None, "offset_s": 0.0, "scope": "node",
            "job_named": True, "causal_ratio": 1.0}  # fmt: skip
    ends = list(zip(attempts["state"].tolist(), attempts["exit_signal"].tolist(), strict=True))
    says = {end: found for end in set(ends) if (found := _stated(*end, table))}
    return [
        {"attempt": attempt, **same, **says[end]}
        for attempt, end in zip(attempts["attempt"].tolist(), ends, strict=True)
        if end in says
    ]


def _stated(state: str, signal: int, table: Weights) -> dict[str, object]:
    """What a state or a signal says by itself."""
    if state in STATED:
        return {"cause": STATED[state], "odds": table.odds["stated"], "text": f"state {state}"}
    if state == "FAILED" and signal in CRASH_SIGNALS:
        text = f"ended by signal {signal}"
        return {"cause": "program_crash", "odds": table.odds["signal"], "text": text}
    return {}


class _Weighing:
    """Which rows still count as a cause, and what the others are instead; arrays by row."""

    def __init__(self, weight: Floats) -> None:
        self.weight = weight
        self.counts = np.ones(len(weight), dtype=bool)
        self.role = np.full(len(weight), "cause", dtype=object)
        self.why = np.full(len(weight), "", dtype=object)

    def dismiss(self, which: Bools, role: str, why: str) -> None:
        """Takes rows that still count as a cause out of the weighing."""
        chosen = which & self.counts
        self.role[chosen], self.why[chosen] = role, why
        self.weight[chosen], self.counts[chosen] = 0.0, False


def _weighed(rows: pd.DataFrame, attempts: pd.DataFrame, table: Weights) -> pd.DataFrame:
    """Odds that remain after chance, claims and differential diagnosis, with the reason."""
    cause, names = pd.factorize(rows["cause"])  # -1, the last below: names none
    domains = {name: cause.domain for name, cause in table.taxonomy.causes.items()}
    domain = np.array([*map(domains.get, names), None], dtype=object)[cause]

    def among(causes: Collection[str]) -> Bools:
        """Whether the cause of each row is one of these."""
        found: Bools = np.array([*(name in causes for name in names), False])[cause]
        return found

    by_program = among([name for name, of in domains.items() if of == "user"])
    proximate = among(table.proximate)
    odds = rows["odds"].fillna(0.0).to_numpy()
    ratio = rows["causal_ratio"].fillna(1.0).to_numpy()
    weighing = _Weighing(odds * ratio / (1.0 + odds * (1.0 - ratio)))
    dismiss = weighing.dismiss
    dismiss(cause < 0, "context", "names no cause")
    dismiss(odds <= 0, "context", "too mild to be the cause")
    dismiss(weighing.weight <= 0, "context", "as frequent around successful jobs")
    _claim_processes(rows, weighing, table)
    row = rows["row"].to_numpy()
    lost = attempts["state"].isin(LOST).to_numpy() | attempts["failed_node"].notna().to_numpy()
    lost_node = lost[row]
    dismiss(lost_node & by_program, "excluded", "the node was lost")
    again = among(["node_lost", "requeued"])
    dismiss(lost_node & again, "context", "says again that the node was lost")

    def shared(which: Bools) -> Bools:
        """All rows of the attempts of these rows."""
        some = np.zeros(len(attempts), dtype=bool)
        some[row[which]] = True
        found: Bools = some[row]
        return found

    alone = among(table.only_the_program) & (weighing.weight >= 1)
    why = "only the program itself makes the error in its log"
    dismiss(shared(alone) & ~by_program, "excluded", why)
    of_nodes = [name for name, of in domains.items() if of in ("hardware", "system_software")]
    deep = among(of_nodes) & ~proximate & (weighing.weight >= 1)
    dismiss(shared(deep) & proximate, "consequence", "follows the cause")
    return rows.assign(domain=domain, weight=weighing.weight, role=weighing.role, why=weighing.why)


def _claim_processes(rows: pd.DataFrame, weighing: _Weighing, table: Weights) -> None:
    """A line about one process counts for one attempt: the one named, else the nearest end."""
    own = rows["scope"].eq("process").to_numpy()
    if not own.any():
        return
    named = rows["job_named"]
    weighing.dismiss(own & named.eq(False).to_numpy(), "excluded", "names another job")
    near = rows["offset_s"].between(-table.before_s, table.after_s)
    far = own & ~(near | named.eq(True)).to_numpy()
    weighing.dismiss(far, "excluded", "too long before or after the end")
    asked = ["attempt", "cluster", "node", "key", "offset_s", "job_named"]
    open_ = rows.loc[own & weighing.counts, asked]
    apart = (open_["offset_s"] - clock_offsets(open_)).abs()
    order = open_.assign(named=open_["job_named"].ne(True), apart=apart).sort_values(
        ["cluster", "key", "named", "apart", "attempt"]
    )
    beaten = order.index[order.duplicated(["cluster", "key"])]
    why = "another attempt ended nearer to it"
    weighing.dismiss(rows.index.isin(beaten), "excluded", why)


def clock_offsets(pairs: pd.DataFrame) -> pd.Series:
    """Seconds by which the clock of observations runs ahead of the scheduler's.

    Lines about a process are written as it dies, so their offsets from the right ends pile up at
    one value, those from other ends spread evenly. The value is the fullest of overlapping bins,
    of the node where at least three lines and half of all agree, else of its cluster, else 0.

    Parameters
    ----------
    pairs : DataFrame
        Columns cluster, node, key (of the line), offset_s; one row for each end that a line may
        belong to.

    Returns
    -------
    Series
        Seconds, of each pair.

    Misleads where each line has a clock error of its own: then no bin holds half, and 0 stands.

    Examples
    --------
    >>> pairs = pd.DataFrame({"cluster": "a", "node": "n", "key": [1, 1, 2, 3, 4],
    ...     "offset_s": [58.0, -4.0, 57.5, 59.0, 58.5]})
    >>> clock_offsets(pairs).tolist()
    [57.5, 57.5, 57.5, 57.5, 57.5]
    """
    found = pd.Series(0.0, index=pairs.index)
    if pairs["key"].nunique() < AGREEING:
        return found
    for keys in (["cluster"], ["cluster", "node"]):
        named = pairs[[*keys, "key"]]
        bins = pd.concat(
            [
                named.assign(bin=np.floor((pairs["offset_s"] + shift) / BIN_S) * BIN_S - shift)
                for shift in (0.0, BIN_S / 2)
            ]
        )
        lines = bins.drop_duplicates([*keys, "key", "bin"])
        counts = lines.groupby([*keys, "bin"], dropna=False).size().rename("n").reset_index()
        counts["apart"] = (counts["bin"] + BIN_S / 2).abs()
        best = counts.sort_values(["n", "apart", "bin"], ascending=[False, True, True])
        best = best.drop_duplicates(keys).set_index(keys)
        total = pairs.groupby(keys, dropna=False)["key"].nunique()
        sure = best[best["n"].ge(AGREEING) & best["n"].mul(2).ge(total.reindex(best.index))]
        middle = pairs[keys].join(sure["bin"] + BIN_S / 2, on=keys)["bin"]
        found = middle.fillna(found)
    return found


def _shares(rows: pd.DataFrame, table: Weights) -> pd.DataFrame:
    """Share of each cause of each attempt: row, cause, domain, odds, share, at."""
    counted = rows.loc[
        rows["role"].eq("cause") & rows["weight"].gt(0),
        ["row", "cause", "kind", "weight", "offset_s"],
    ]
    by_kind = counted.groupby(["row", "cause", "kind"], sort=False)["weight"].max()
    odds = by_kind.groupby(level=["row", "cause"], sort=False).sum().rename("odds").reset_index()
    first = counted.groupby(["row", "cause"], sort=False)["offset_s"].min().rename("at")
    odds = odds.join(first, on=["row", "cause"])
    causes = table.taxonomy.causes
    odds["domain"] = odds["cause"].map({name: cause.domain for name, cause in causes.items()})
    total = odds.groupby("row")["odds"].transform("sum")
    odds["share"] = odds["odds"] / (1.0 + total)
    return odds.sort_values(
        ["row", "share", "at", "cause"], ascending=[True, False, True, True], ignore_index=True
    )


def _verdicts(
    attempts: pd.DataFrame, rows: pd.DataFrame, shares: pd.DataFrame, table: Weights
) -> Verdicts:
    """The verdict of each attempt from the shares of its causes."""
    best = _best(shares).reindex(attempts.index)
    found = best["cause"].notna()
    bare = _without_evidence(attempts)
    leading = _leading(rows, best)
    of_node = best["domain"].isin(["hardware", "system_software"]) | bare.eq("node_lost")
    cause = best["cause"].where(found, bare)
    verdicts = pd.DataFrame(
        {
            "attempt": attempts["attempt"],
            "symptom": cause.map(_symptoms(table)),
            "domain": best["domain"].where(found, "unknown"),
            "cause": cause,
            "confidence": best["share"].where(found, 0.0),
            "method": leading["method"].reindex(attempts.index).where(found, "none"),
            "node": _first_known(
                attempts["failed_node"],
                leading["node"].reindex(attempts.index).where(of_node),
                attempts["only_node"].where(of_node),
            ),
        }
    )
    beside = rows["role"].eq("cause") & (rows["cause"] != rows["row"].map(best["cause"]))
    rows.loc[beside, ["role", "why"]] = ["other", "speaks for another cause"]
    others = _alternatives(attempts, rows, shares, best["cause"])
    return Verdicts(verdicts, rows.drop(columns=["row"]), others)


_NO_EVIDENCE = pd.DataFrame(columns=[*COLUMNS, "domain", "weight", "role", "why"])
_NO_OTHERS = pd.DataFrame(columns=["attempt", "cause", "confidence", "reason"])
"""Made once: a frame without rows costs a small ingest a millisecond."""


def _bare(attempts: pd.DataFrame, table: Weights) -> Verdicts:
    """Verdicts on attempts of which nothing at all is known beyond their state."""
    cause = _without_evidence(attempts)
    verdicts = pd.DataFrame(
        {
            "attempt": attempts["attempt"],
            "symptom": cause.map(_symptoms(table)),
            "domain": "unknown",
            "cause": cause,
            "confidence": 0.0,
            "method": "none",
            "node": _first_known(
                attempts["failed_node"], attempts["only_node"].where(cause.eq("node_lost"))
            ),
        }
    )
    return Verdicts(verdicts, _NO_EVIDENCE.copy(), _NO_OTHERS.copy())


def _best(shares: pd.DataFrame) -> pd.DataFrame:
    """The strongest cause of the domain that holds at least half, by row."""
    by_domain = shares.groupby(["row", "domain"], sort=False)["share"].sum().reset_index()
    led = by_domain.loc[by_domain["share"].ge(0.5), ["row", "domain"]]
    return shares.merge(led, on=["row", "domain"]).drop_duplicates("row").set_index("row")


def _without_evidence(attempts: pd.DataFrame) -> pd.Series:
    """What an attempt is called where nothing names a cause."""
    place, states = pd.factorize(attempts["state"], use_na_sentinel=False)
    names_node = attempts["failed_node"].notna().to_numpy()
    lost = np.array([LOST.get(state, "node_lost") for state in states], dtype=object)
    other = np.array([LOST.get(s) or _REST.get(s, "unknown") for s in states], dtype=object)
    found = np.where(names_node, lost[place], other[place])
    return pd.Series(found, index=attempts.index, dtype=object)


def _alternatives(
    attempts: pd.DataFrame, rows: pd.DataFrame, shares: pd.DataFrame, verdict: pd.Series
) -> pd.DataFrame:
    """Causes with a share that are not the verdict, then those that the diagnosis took out."""
    weaker = shares[shares["cause"].ne(shares["row"].map(verdict))]
    barred = rows[rows["role"].isin(["consequence", "excluded"]) & rows["cause"].notna()]
    parts = (
        weaker[["row", "cause"]].assign(
            confidence=weaker["share"], reason="evidence for it is weaker"
        ),
        barred[["row", "cause"]].assign(confidence=0.0, reason=barred["why"]),
    )
    others = pd.concat([part for part in parts if len(part)] or parts, ignore_index=True)
    others = others.drop_duplicates(["row", "cause"])
    others.insert(0, "attempt", attempts["attempt"].to_numpy()[others.pop("row").astype("int64")])
    return others


_METHODS = {"health_event": "health_event", "node_event": "scheduler", "scheduler": "scheduler"}


def _first_known(*columns: pd.Series) -> pd.Series:
    """Row by row the first value that is known."""
    found = np.full(len(columns[0]), None, dtype=object)
    for column in reversed(columns):
        known = column.notna().to_numpy()
        found[known] = column.to_numpy(dtype=object)[known]
    return pd.Series(found, index=columns[0].index)


_LED_BY = ["row", "kind", "weight", "offset_s", "key", "node", "log_method"]


def _leading(rows: pd.DataFrame, best: pd.DataFrame) -> pd.DataFrame:
    """Method and node of the strongest evidence for the verdict of each row."""
    verdict = best["cause"].reindex(rows["row"]).to_numpy()
    asked = rows.columns.intersection(_LED_BY)
    mine = rows.loc[rows["role"].eq("cause") & (rows["cause"].to_numpy() == verdict), asked]
    mine = mine.sort_values(
        ["row", "weight", "offset_s", "key"], ascending=[True, False, True, True]
    )
    method = mine["kind"].map(_METHODS)
    method = method.where(mine["kind"] != "job_log", mine.get("log_method", "log_rule"))
    first = mine.assign(method=method).drop_duplicates("row").set_index("row")
    node = mine[mine["node"].notna()].drop_duplicates("row").set_index("row")["node"]
    leading: pd.DataFrame = first[["method"]].join(node)
    return leading


def _symptoms(table: Weights) -> Mapping[str, str]:
    """Cause -> the symptom that is likeliest to show it: the first that lists it first."""
    found: dict[str, tuple[int, str]] = {}
    for name, symptom in table.taxonomy.symptoms.items():
        for position, cause in enumerate(symptom.causes):
            if cause not in found or position < found[cause][0]:
                found[cause] = (position, name)
    return {cause: name for cause, (_, name) in found.items()}
