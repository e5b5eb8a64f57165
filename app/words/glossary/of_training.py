"""Terms of Stragglers, beside those that runs share."""

from __future__ import annotations

from app.words.terms import LIN, Term

_STRAGGLERS = ("stragglers",)
SLOWDOWN = Term(
    "Slowdown",
    "S of the paper: mean time of a step as it ran, without launch delays, over that of the same "
    "step with every operation at its ideal cost: the mean of its type for computes, the median "
    "for transfers. Above 1.1 the run straggles. The interval lets steps depend on those near "
    "them; none where they span fewer than 30.",
    unit="ratio",
    source=LIN,
    pages=_STRAGGLERS,
    equation="S = T / T_ideal",
)
WASTED_SHARE = Term(
    "GPU-time wasted",
    "1 - 1 / S: share of the run's GPU-hours that waiting for stragglers takes.",
    unit="ratio",
    source=LIN,
    pages=_STRAGGLERS,
)
WASTED_HOURS = Term(
    "Wasted, GPU-h a day",
    "GPU-time wasted x GPUs of the job x 24 h: per day of training. Needs the job's GPUs, which "
    "the meta file of the trace states.",
    unit="GPU-h a day",
    source=LIN,
    pages=_STRAGGLERS,
)
SLOWEST_WORKERS = Term(
    "Due to slowest workers",
    "M_W of the paper: share of T - T_ideal that fixing the slowest 3 % of workers recovers. "
    "Above 50 % few workers are the problem. It can exceed 100 % or fall below 0: the ideal is a "
    "mean that the slow workers raise.",
    unit="ratio",
    source=LIN,
    pages=_STRAGGLERS,
    equation="M_W = (T - T_fix) / (T - T_ideal)",
)
LAST_STAGE = Term(
    "Due to last stage",
    "M_S of the paper: share of T - T_ideal that fixing the last pipeline stage recovers. From "
    "50 % on the stages are uneven, often by the loss layer. It can exceed 100 % or fall below 0, "
    "as that of the slowest workers can.",
    unit="ratio",
    source=LIN,
    pages=_STRAGGLERS,
    equation="M_S = (T - T_fix) / (T - T_ideal)",
)
LAUNCH_SLOWDOWN = Term(
    "Launch slowdown",
    "Traced over simulated step time: delays that no dependency explains, such as data loading, "
    "and the simulation's own error. Above 5 % the paper leaves a trace out.",
    unit="ratio",
    source=LIN,
    pages=_STRAGGLERS,
)
WORKER_SLOWDOWN = Term(
    "Slowdown by one worker",
    "S_w of the paper: step time if this worker alone kept its own costs, over the ideal one. "
    "`exact` simulates each worker; `min` is the paper's approximation, the smaller of its rank's "
    "and its stage's.",
    unit="ratio",
    source=LIN,
    pages=_STRAGGLERS,
    of_column=True,
)
GIVEN_BACK = Term(
    "Given back",
    "(T - T_fix) / T: share of the mean step time that the fix gives back. Gains of several parts "
    "do not add up. The interval is over the traced steps, as that of S.",
    unit="ratio",
    pages=_STRAGGLERS,
)
GIVEN_BACK_HOURS = Term(
    "Given back, GPU-h a day",
    "Share given back x GPUs of the job x 24 h: per day of training.",
    unit="GPU-h a day",
    pages=_STRAGGLERS,
)
STRAGGLES_WHEN = Term(
    "When",
    "A step straggles where its S is above 1.1. Autocorrelation: of a step's S with that of the "
    "next traced step, 1 where slow steps stand together, about 0 where they come at random. An "
    "onset is a step from which on steps take 3 % longer or more, by 6 standard errors.",
    pages=_STRAGGLERS,
)
STRAGGLES_WHERE = Term(
    "Where",
    "What a worker, rank, stage or node costs alone: S - 1 with all others ideal. Gini "
    "coefficient: 0 where all cost the same, near 1 where one costs all.",
    pages=_STRAGGLERS,
)
GIVES_BACK = Term(
    "Gives back",
    "Share of the step time that fixing this cause alone gives back. It can exceed what is wasted: "
    "the ideal keeps the work of a slow worker and spreads it over all.",
    unit="ratio",
    pages=_STRAGGLERS,
    of_column=True,
)
SHARE_OF_TRACES = Term(
    "Share of traces",
    "Share of the traces that straggle of which this is the strongest cause.",
    unit="ratio",
    pages=_STRAGGLERS,
    of_column=True,
)
GPU_HOURS_OF_TRACE = Term(
    "GPU-hours of a trace",
    "GPU-hours of the run, divided evenly over its traces.",
    unit="GPU-h",
    pages=_STRAGGLERS,
    of_column=True,
)
SIMULATION_ERROR = Term(
    "Simulation error",
    "How far the simulated step time is from the traced one. Above 5 % a trace is left out of the "
    "shares.",
    unit="ratio",
    pages=_STRAGGLERS,
    of_column=True,
)
RECOVERED = Term(
    "Recovered",
    "Share of T - T_ideal that fixing these recovers.",
    unit="ratio",
    pages=_STRAGGLERS,
    of_column=True,
)
