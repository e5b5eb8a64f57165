"""Which recovery policy would get most out of a job?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analytics.estimate import CONF_LEVEL, unknown
from analytics.recovery.comparison import A_RUN, DAYS, Ranked, Trial, outcome, ranking
from analytics.recovery.groups import after_loss
from analytics.recovery.histories import Hazards
from analytics.recovery.policy import BASE, Parameter, Site, policies
from app.answers.content import Answer, Chart, Missing, composed, estimated, ranged
from app.answers.described import DATA, Rows, field
from app.answers.recovery.systems import ANALYSES
from app.words import numbers
from app.words.cells import Column
from app.words.glossary import of_recovery
from data.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from analytics.recovery.policy import Certainty, Policy
    from app.answers.content import Block, Number
    from app.answers.described import Field
    from app.answers.recovery.sites import Plan

FEW_TIED = 3


def plainly(make: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls a function."""
    return make(*args, **kwargs)


def changes(texts: Sequence[str]) -> dict[str, dict[str, float]]:
    """Parameters that a user states, each as policy.name=number.

    Raises
    ------
    DataError
        For a text that is none.

    Examples
    --------
    >>> changes(["gemini.copies=3", "gemini.load_min=0.5"])
    {'gemini': {'copies': 3.0, 'load_min': 0.5}}
    """
    found: dict[str, dict[str, float]] = {}
    for text in texts:
        place, _, value = text.partition("=")
        key, _, name = place.strip().partition(".")
        try:
            found.setdefault(key, {})[name] = float(value)
        except ValueError as error:
            raise DataError(
                f"must be POLICY.NAME=NUMBER, e.g. gemini.copies=3: {text!r}"
            ) from error
    return found


def answer(  # noqa: PLR0913
    plan: Plan | str | None,
    *,
    keys: Sequence[str] = (),
    changed: Mapping[str, Mapping[str, float]] | None = None,
    days: float | None = None,
    conf_level: float = CONF_LEVEL,
    seed: int = 0,
    keep: Callable[..., Any] = plainly,
    told: Callable[[int, int], None] = lambda done, of: None,
) -> Answer:
    """Policies ranked on a job; without one, or where its failures are unknown, what they are.

    Runs last the days that are stated, else 30, or as many as hold 3,000 failures.
    `keep` is what calls the simulation of one policy, `told` hears how many of how many are done.
    """
    changed = changed or {}
    chosen = list(dict.fromkeys(keys)) or list(policies())
    for key in (*chosen, *changed):
        if key not in policies():
            raise DataError(f"no policy {key!r}: there are {', '.join(policies())}")
        policies()[key].check(changed.get(key, {}))
    unranked = [key for key in changed if key not in chosen]
    if unranked:
        raise DataError(f"a parameter of {unranked[0]} is stated, but it is not among the policies")
    if plan is None or isinstance(plan, str):
        return _listed(chosen, changed, plan)
    trial = Trial(
        site=plan.site,
        counted=plan.counted,
        days=days or DAYS,
        a_run=A_RUN if days is None else None,
        conf_level=conf_level,
        seed=seed,
    )
    outcomes = []
    for done, key in enumerate(chosen):
        told(done, len(chosen))
        outcomes.append(keep(outcome, trial, key, dict(changed.get(key, {}))))
    told(len(chosen), len(chosen))
    ranked = ranking(trial, outcomes)
    columns = tuple(_columns(plan))
    rows = Rows(columns, [_row(each, plan, changed) for each in ranked])
    return Answer(
        _sentence(ranked, plan),
        tuple(_headlines(ranked, plan, trial.days)),
        tuple(_blocks(ranked, rows, changed, plan)),
        notes=tuple(_notes(ranked, plan, trial.lasts)),
        record=[*rows.records(), *_analyses()],
        sheet=rows.sheet(),
    )


COLUMNS = (
    field("rank", "Rank", "count"),
    field("policy", on=DATA),
    field("system", "Policy", px=230),
    field("family", on=DATA),
    field("ettr", "ETTR", "ettr"),
    field("ettr_simulated", "By simulation alone", "ettr", on=DATA),
    field("ettr_beyond_checkpoints", on=("json",)),
    field("lost_gpu_hours", "Held, not trained (GPU-h)", "number", unit="GPU-h"),
    field("standby_nodes", "Nodes on standby", "count"),
    field("tied", "Cannot be told apart from", on=("table",), none="none", px=200),
    field("tied_with", on=("json",)),
    field("does", "What it does", px=320),
    field("asks", "What it asks for", px=260),
    field("builds_on", on=DATA),
    field("shares", on=("json",)),
    field("parameters", on=("json",)),
)


def _columns(plan: Plan) -> Iterator[Field]:
    """Columns of a ranking: what the rates leave open and what it costs, where they are known."""
    for each in COLUMNS:
        yield each
        if each.column.key == "lost_gpu_hours" and plan.price is not None:
            unit = plan.price[1] or "cost"
            yield field("lost_cost", f"Held, not trained ({unit})", "number", unit=unit)


def _row(each: Ranked, plan: Plan, changed: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    """One policy, as every surface has it."""
    tied = [policies()[key].system for key in each.tied_with]
    more = f" and {len(tied) - FEW_TIED} more" if len(tied) > FEW_TIED else ""
    return _about(each.policy, changed.get(each.policy.key, {}), plan) | {
        "rank": each.rank,
        "ettr": each.by_rates or each.ettr,
        "ettr_simulated": each.ettr,
        "lost_gpu_hours": each.lost_node_hours * plan.gpus_per_node,
        "ettr_beyond_checkpoints": each.gain or unknown(CONF_LEVEL, 0),
        "lost_cost": plan.price and each.lost_node_hours * plan.gpus_per_node * plan.price[0],
        "standby_nodes": each.standby,
        "tied": ", ".join(tied[:FEW_TIED]) + more or None,
        "tied_with": list(each.tied_with),
        "shares": dict(each.shares),
    }


def _about(
    policy: Policy, changed: Mapping[str, float], plan: Plan | None = None
) -> dict[str, Any]:
    """What a policy is; that which all build on has the numbers of the site."""
    asks = f"{policy.only}; {policy.asks}" if policy.only else policy.asks
    return {
        "policy": policy.key,
        "system": policy.system,
        "family": policy.family,
        "does": policy.does,
        "asks": asks,
        "builds_on": policy.builds_on,
        "parameters": [
            {
                "name": each.name,
                "value": changed.get(each.name, each.value),
                "unit": each.unit,
                "source": "stated" if each.name in changed else each.source,
                "certainty": "stated" if each.name in changed else each.certainty,
            }
            for each in (*policy.parameters, *(_of_site(plan) if policy.key == BASE else ()))
        ],
    }


def _of_site(plan: Plan | None) -> Iterator[Parameter]:
    """What is the site's own, and every policy's where it brings no other."""
    hazards = Hazards(nodes=1, rates={}) if plan is None else plan.site.hazards
    site = Site(hazards=hazards) if plan is None else plan.site
    known: Mapping[str, Certainty] = {} if plan is None else plan.sure
    for name in ("restart_min", "write_min", "queue_min", "detect_min", "isolate_min", "load_min"):
        sure = known.get(name, "assumed")
        source = OWN if name in known else DEFAULTS
        yield Parameter(name, getattr(site, name), "min", source, sure)
    if plan is None:
        return
    interval = site.mechanism().interval_min
    if site.interval_min is None:
        yield Parameter(
            "interval_min", interval, "min", "Daly-Young's of rate and write", "derived"
        )
    else:
        yield Parameter("interval_min", interval, "min", OWN, known.get("interval_min", "assumed"))


OWN = "of this site"
DEFAULTS = "2410.21680: w about 5 min, u0 about 5 to 20 min; what is not stated is 0"


def _listed(
    chosen: Sequence[str], changed: Mapping[str, Mapping[str, float]], why: str | None
) -> Answer:
    """What there is, not ranked."""
    listed = [_about(policies()[key], changed.get(key, {})) for key in chosen]
    for each in listed:
        each |= dict.fromkeys(
            ("ettr", "ettr_simulated", "ettr_beyond_checkpoints"), unknown(CONF_LEVEL, 0)
        )
        each |= dict.fromkeys(("lost_gpu_hours", "rank", "shares"))
        each |= {"tied_with": [], "tied": None, "standby_nodes": None}
    if why is None:
        said = f"{len(chosen)} recovery policies. To rank them, state a job and its failure rate."
    else:
        said = f"Which recovery policy is best cannot be judged: {why}"
    blocks: list[Block] = []
    if why is not None:
        blocks.append(
            Missing("policies_ranked", said, "At a rate of your own:",
                    ("faultline policies --gpus 1024 --rate-per-1000-node-days 6.5",))
        )  # fmt: skip
    known = Rows([of for of in COLUMNS if of.column.key in NOT_RANKED], listed)
    blocks += [known.table("policies", "Policies"), _parameters(chosen, changed), _systems()]
    rows = Rows(COLUMNS, listed)
    return Answer(
        said, blocks=tuple(blocks), record=[*rows.records(), *_analyses()], sheet=rows.sheet()
    )


NOT_RANKED = ("policy", "system", "family", "does", "asks", "builds_on")


def _best(ranked: Sequence[Ranked]) -> Ranked:
    """The best that any job can have; the best at all where each needs something special."""
    return next((each for each in ranked if not each.policy.only), ranked[0])


def _sentence(ranked: Sequence[Ranked], plan: Plan) -> str:
    best = _best(ranked)
    n_tied, gpus = len(best.tied_with), numbers.gpu_count(plan.gpus)
    said = f"{best.policy.system} gets most out of {gpus}"
    if n_tied:
        others = "one other policy" if n_tied == 1 else f"{n_tied} other policies"
        said = f"{best.policy.system} and {others} get most out of {gpus}, and are not told apart"
    said += f": ETTR {numbers.decimals(best.ettr.value)}"
    base = next((each for each in ranked if each.policy.key == BASE), None)
    if base is not None and base is not best:
        said += f" instead of {numbers.decimals(base.ettr.value)} with checkpoints alone"
    return said + "."


def _headlines(ranked: Sequence[Ranked], plan: Plan, days: float) -> Iterator[Number]:
    best = _best(ranked)
    yield estimated(of_recovery.BEST_ETTR, "ettr", best.by_rates or best.ettr)
    base = next((each for each in ranked if each.policy.key == BASE), None)
    if base is not None:
        yield estimated(of_recovery.BASE_ETTR, "ettr", base.by_rates or base.ettr)
    if best.gain is not None:
        won = best.gain.scaled(plan.gpus * 24.0 * days)
        yield ranged(of_recovery.WON, won, f"in {numbers.number(days)} days", unit="GPU-h")
    n = len(best.tied_with)
    names = ", ".join(policies()[key].system for key in best.tied_with[:FEW_TIED])
    yield composed(of_recovery.TIED, numbers.count(n), names or "none", exact=n, unit="policies")


def _blocks(
    ranked: Sequence[Ranked], rows: Rows, changed: Mapping[str, Mapping[str, float]], plan: Plan
) -> Iterator[Block]:
    keys = [each.policy.key for each in ranked]
    yield Chart(
        "recovery.policies_ranked",
        "What each policy loses, and to what",
        "Time that is not productive by what takes it, one bar a policy, the best first; beside it "
        "the ETTR.",
        (tuple(ranked),),
    )
    yield rows.table("policies", "Policies, the best first")
    yield _parameters(keys, changed, plan)
    yield _systems()


def _parameters(
    keys: Sequence[str], changed: Mapping[str, Mapping[str, float]], plan: Plan | None = None
) -> Block:
    """Every number that a policy brings, and who says so."""
    listed = [
        {"system": policies()[key].system, "policy": key} | each
        for key in keys
        for each in _about(policies()[key], changed.get(key, {}), plan)["parameters"]
    ]
    return Rows(PARAMETERS, listed).table(
        "policy_parameters", "What policies bring, and who says so",
        note="What a site states itself (restart, write, queue, detection) is the same for all.",
    )  # fmt: skip


PARAMETERS = (
    field("system", "Policy", px=230),
    field("name", "Parameter"),
    field("value", "At", "number"),
    field("unit", "Unit"),
    field("certainty", "How sure"),
    field("source", "Source", px=360),
)
SYSTEMS = (
    Column("system", "System", px=260),
    Column("does", "What stands for it here", px=380),
    Column("source", "Source"),
    field("command", "Answered by", of=lambda each: each.command and f"faultline {each.command}",
          none="not yet"),
)  # fmt: skip


def _systems() -> Block:
    return Rows(SYSTEMS, ANALYSES).table("analyses", "Systems that are analyses, not policies")


def _analyses() -> list[dict[str, Any]]:
    """Analyses, with the keys of policies."""
    return [
        {
            "policy": None, "system": each.system, "family": "analysis", "does": each.does,
            "command": each.command or None, "source": each.source, "parameters": [],
            "ettr": unknown(CONF_LEVEL, 0), "lost_gpu_hours": None, "rank": None, "tied_with": [],
        }
        for each in ANALYSES
    ]  # fmt: skip


def _notes(ranked: Sequence[Ranked], plan: Plan, days: float) -> Iterator[str]:
    site, first = plan.site, ranked[0].policy
    if first.only and first is not _best(ranked).policy:
        yield f"{first.system} would get more out of it, where it is {first.only}."
    yield from plan.said
    interval = site.mechanism().interval_min
    how = "as runs do or are taken to" if site.interval_min is not None else "Daly-Young's"
    yield (
        f"Restart {numbers.number(site.restart_min)} min, write {numbers.number(site.write_min)} "
        f"min, queue {numbers.number(site.queue_min)} min, a checkpoint every "
        f"{numbers.number(interval)} min ({how}; what writes faster has its own Daly-Young's); "
        f"pipelines of {site.grid.stages} nodes."
    )
    if not site.detect_min:
        yield (
            "How long a failed job stands unnoticed is not stated: what detection saves is not in "
            "the ranking."
        )
    if not site.load_min:
        yield (
            "How long a checkpoint takes to load is not stated: it counts in the "
            "restart. What loads faster saves nothing of it, what starts up faster all of it."
        )
    if not site.queue_min and site.cluster_gives:
        yield "Other nodes are there at once: spares, and going on without a node, save little."
    yield (
        f"Each policy met the same failures in runs of {numbers.number(days)} days and more; two "
        "are told apart where runs and, if counted, rates both say so."
    )


def recovered(nodes: int, copies: int, lost: int) -> Answer:
    """Chance that a state in memory outlives the loss of so many machines at once."""
    chance = after_loss(nodes, copies, lost)
    return Answer(
        f"A state with {numbers.counted(copies, 'copy', 'copies')} on "
        f"{numbers.counted(nodes, 'machine')} outlives the loss of {lost} at once with "
        f"{numbers.percent(chance)}.",
        record={"nodes": nodes, "copies": copies, "lost": lost, "p_recover": chance},
    )
