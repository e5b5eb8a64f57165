"""Terms of the stability of training runs."""

from __future__ import annotations

from app.words.terms import Term

_RUNS = ("runs",)
SPIKE = Term(
    "Loss spike",
    "Rows at which loss or gradient norm lie above what the rows before let expect, further than "
    "the run's own noise brings by chance once in 500,000 rows. It begins with the first row of "
    "three scales and ends with the first of three calm ones.",
    unit="",
    pages=_RUNS,
)
DIVERGENCE = Term(
    "Divergence",
    "A rise that lasts: a spike still high after 100 rows where the log ends, or a loss whose "
    "median of 128 rows stays above its lowest by 2 % and ten times its noise.",
    pages=_RUNS,
)
LOSS_SCALE_COLLAPSE = Term(
    "Loss-scale collapse",
    "The dynamic loss scale of fp16 fell to a sixteenth within 100 rows: gradients overflow again "
    "and again. One halving is its ordinary work.",
    pages=_RUNS,
)
STEP_TIME_SHIFT = Term(
    "Step-time shift",
    "A level of the step time that stays: seven of eight rows beyond the noise, or the median of "
    "64 rows, by 1 % or more. A slow GPU is one; a slow step, evaluation or a checkpoint is none.",
    unit="ratio",
    pages=_RUNS,
)
EPISODE = Term(
    "Episodes",
    "Spikes, divergence, NaN and loss-scale collapse of all series that lie within 32 rows.",
    pages=_RUNS,
)
STEPS_AGAIN = Term(
    "Steps done again",
    "Steps that are logged twice since a restart went back before them.",
    unit="steps",
    pages=_RUNS,
)
ROWS_JUDGED = Term(
    "Rows judged",
    "Logged steps with 32 rows before them, of the series with most. The first rows of a run, and "
    "what was not logged, cannot be judged.",
    unit="rows",
    pages=_RUNS,
)
PEAK_Z = Term(
    "z",
    "Distance of the peak from the level expected, in scales: 1.48 times the median deviation of "
    "the rows before.",
    of_column=True,
    pages=_RUNS,
)
REWIND = Term(
    "Go back to",
    "The last checkpoint saved at least 100 steps before the start, else the step 100 before it "
    "(PaLM's practice, arXiv 2204.02311, section 5.1). Nothing is advised where it recovered.",
    of_column=True,
    pages=_RUNS,
)
SKIP = Term(
    "Skip data of",
    "Steps whose batches to leave out when going back: 200 to 500, with the peak among them.",
    of_column=True,
    pages=_RUNS,
)
CHANCE_BESIDE = Term(
    "By chance",
    "Share of moments of the run's own time at which a window of the same length would have held "
    "an event of its nodes: near 100 % the event beside an episode says nothing.",
    unit="ratio",
    of_column=True,
    pages=_RUNS,
)
