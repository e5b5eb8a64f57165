"""What happened on a node: jobs, health events, outages and tickets on one axis."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import pandas as pd

from app.figures import template
from app.figures.failures import domains
from app.figures.failures.attempts import date_axis, local
from app.words import numbers
from app.words.domains import title

if TYPE_CHECKING:
    from collections.abc import Mapping

    import plotly.graph_objects as go

    from app.figures.template import Mode

ROW_HEIGHT = 34
FRAME_HEIGHT = 126
BAR_WIDTH = 0.5
SEVERITIES = ("fatal", "critical", "warning", "info")
UNKNOWN_SEVERITY = "unknown severity"
SPELLS = {"node_event": "out of service", "ticket": "tickets", "node_failure": "failures"}
"""Kinds that last, and the names of their rows."""
JOBS = "jobs"
LONGEST = 160


def figure(
    history: pd.DataFrame,
    attempts: pd.DataFrame,
    *,
    titles: Mapping[str, str],
    period: tuple[pd.Timestamp, pd.Timestamp],
    timezone: str,
    mode: Mode = "light",
    note: str = "",
) -> go.Figure:
    """What happened on this node, and which of its jobs failed?

    Parameters
    ----------
    history : DataFrame
        Columns kind, start_at, end_at, what, severity, text.
    attempts : DataFrame
        Columns job_id, attempt, state, start_at, end_at, cause, domain, here
        (this node ended it).
    titles
        Cause -> its title.
    period
        First and last time drawn; what has no end is drawn to the last.
    timezone
        Zone of the axis.
    """
    rows = _rows(history, attempts)
    chart = template.figure(
        title="What happened on this node?",
        note=note,
        mode=mode,
        height=FRAME_HEIGHT + ROW_HEIGHT * max(len(rows), 1),
    )
    end = period[1]
    _add_jobs(chart, attempts, end=end, timezone=timezone, mode=mode)
    _add_failures(chart, attempts, titles=titles, timezone=timezone, mode=mode)
    for kind, row in SPELLS.items():
        spells = history[history["kind"].eq(kind)]
        _add_spells(chart, spells, row=row, end=end, timezone=timezone, mode=mode)
    events = history[history["kind"].eq("health_event") & history["start_at"].notna()]
    for severity in (*SEVERITIES, UNKNOWN_SEVERITY):
        found = events[_severity(events).eq(severity)]
        _add_events(chart, found, severity=severity, timezone=timezone, mode=mode)
    chart.update_layout(barmode="overlay", margin={"r": 24})
    date_axis(chart, period, timezone)
    chart.update_yaxes(
        type="category",
        categoryorder="array",
        categoryarray=rows,
        range=[max(len(rows), 1) - 0.5, -0.5],
        tickfont={"color": template.PALETTES[mode].text},
        showgrid=False,
        ticklen=0,
    )
    return chart


def frame(history: pd.DataFrame, *_: object, **__: object) -> pd.DataFrame:
    """One row a record; the attempts have a table of their own."""
    return history


def _rows(history: pd.DataFrame, attempts: pd.DataFrame) -> list[str]:
    """Rows that hold something, in the order in which they are drawn."""
    kinds, events = set(history["kind"]), history[history["kind"].eq("health_event")]
    severities = set(_severity(events))
    return [
        *([JOBS] if len(attempts) else []),
        *(s for s in (*SEVERITIES, UNKNOWN_SEVERITY) if s in severities),
        *(row for kind, row in SPELLS.items() if kind in kinds),
    ]


def _severity(events: pd.DataFrame) -> pd.Series:
    """Severity of each event; one that is none of ours is unknown."""
    known = events["severity"].astype("object")
    return known.where(known.isin(SEVERITIES), UNKNOWN_SEVERITY)


def _add_jobs(
    chart: go.Figure, attempts: pd.DataFrame, *, end: pd.Timestamp, timezone: str, mode: Mode
) -> None:
    """Attempts that ran here, as bars that lie over one another where they shared the node."""
    ran = attempts[attempts["start_at"].notna()]
    _add_bars(
        chart,
        ran["start_at"],
        ran["end_at"].fillna(end),
        row=JOBS,
        marker={
            "color": template.translucent(template.PALETTES[mode].series, 0.35),
            "line": {"width": 0},
        },
        says=[
            f"job {job_id}, attempt {attempt}: {state}<br>{_when(start, until, timezone)}"
            for job_id, attempt, state, start, until in zip(
                *(ran[c] for c in ("job_id", "attempt", "state", "start_at", "end_at")), strict=True
            )
        ],
        timezone=timezone,
    )


def _add_failures(
    chart: go.Figure,
    attempts: pd.DataFrame,
    *,
    titles: Mapping[str, str],
    timezone: str,
    mode: Mode,
) -> None:
    """Ends of failed attempts in the colour of their domain, large where this node ended them."""
    failed = attempts[attempts["cause"].notna() & attempts["end_at"].notna()]
    for here in (False, True):
        rows = failed[failed["here"].eq(here)]
        chart.add_scatter(
            x=[local(at, timezone) for at in rows["end_at"]],
            y=[JOBS] * len(rows),
            mode="markers",
            marker={
                "symbol": "x" if here else "x-thin-open",
                "size": 12 if here else 8,
                "color": [domains.colour(str(domain), mode) for domain in rows["domain"]],
            },
            customdata=[
                f"job {job_id}, attempt {attempt}: {state}<br>"
                f"{titles.get(cause, cause)} ({title(domain)})<br>"
                f"{numbers.moment(at, timezone)}"
                for job_id, attempt, state, cause, domain, at in zip(
                    *(rows[c] for c in ("job_id", "attempt", "state", "cause", "domain", "end_at")),
                    strict=True,
                )
            ],
            hovertemplate="%{customdata}"
            + ("<br>ended by this node" if here else "")
            + "<extra></extra>",
            name="failed here" if here else "failed",
        )


def _add_events(
    chart: go.Figure, events: pd.DataFrame, *, severity: str, timezone: str, mode: Mode
) -> None:
    """Health events of one severity."""
    palette = template.PALETTES[mode]
    chart.add_scatter(
        x=[local(at, timezone) for at in events["start_at"]],
        y=[severity] * len(events),
        mode="markers",
        marker={
            "symbol": "line-ns-open" if severity in ("info", UNKNOWN_SEVERITY) else "diamond",
            "size": 10,
            "color": getattr(palette, severity, palette.unknown),
        },
        customdata=[
            f"{what}: {_cut(text)}<br>{numbers.moment(at, timezone)}"
            for what, text, at in zip(
                events["what"], events["text"], events["start_at"], strict=True
            )
        ],
        hovertemplate="%{customdata}<extra></extra>",
        name=severity,
    )


def _add_spells(
    chart: go.Figure,
    spells: pd.DataFrame,
    *,
    row: str,
    end: pd.Timestamp,
    timezone: str,
    mode: Mode,
) -> None:
    """Outages, tickets or failures; planned outages in outline."""
    palette = template.PALETTES[mode]
    dated = spells[spells["start_at"].notna()]
    planned = dated["what"].fillna("").str.startswith("planned")
    filled: dict[str, object] = {
        "color": palette.critical if row != SPELLS["ticket"] else palette.reference
    }
    outline: dict[str, object] = {
        "color": palette.background,
        "line": {"width": 1.5, "color": palette.reference},
    }
    for which, marker in ((~planned, filled), (planned, outline)):
        rows = dated[which]
        _add_bars(
            chart,
            rows["start_at"],
            rows["end_at"].fillna(end),
            row=row,
            marker=marker,
            says=[
                f"{what}: {_cut(text)}<br>{_when(at, until, timezone)}"
                for what, text, at, until in zip(
                    *(rows[c] for c in ("what", "text", "start_at", "end_at")), strict=True
                )
            ],
            timezone=timezone,
        )


def _add_bars(
    chart: go.Figure,
    starts: pd.Series,
    ends: pd.Series,
    *,
    row: str,
    marker: dict[str, object],
    says: list[str],
    timezone: str,
) -> None:
    """Bars from a start to an end on one row."""
    if not len(starts):
        return
    chart.add_bar(
        orientation="h",
        y=[row] * len(starts),
        base=[local(at, timezone) for at in starts],
        x=(ends - starts).dt.total_seconds().clip(lower=0.0).mul(1000.0).tolist(),
        width=BAR_WIDTH,
        marker=marker,
        customdata=says,
        hovertemplate="%{customdata}<extra></extra>",
        name=row,
    )


def _when(start: pd.Timestamp, end: pd.Timestamp, timezone: str) -> str:
    """From when to when; open where no end is known."""
    until = "no end recorded" if pd.isna(end) else f"to {numbers.moment(end, timezone)}"
    return f"{numbers.moment(start, timezone)} {until}"


def _cut(text: object) -> str:
    """A text that fits a hover, with what looks like markup as it was written."""
    said = text if isinstance(text, str) else numbers.UNKNOWN
    return html.escape(said if len(said) <= LONGEST else said[: LONGEST - 1] + "…", quote=False)
