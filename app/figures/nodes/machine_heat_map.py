"""Which machine is unlike the others? One metric by machine and time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from app.figures import template
from app.words import moments

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from analytics.nodes.machines.detection import HeatMap
    from app.figures.template import Mode

ROW_PX, FRAME_PX, LEAST_PX = 14, 130, 260
MOST_NAMED = 24
"""Rows up to which each has its name; of more, the first alone."""


def figure(
    of: HeatMap, *, timezone: str = "UTC", mode: Mode = "light", note: str = ""
) -> go.Figure:
    """The metric that decided; the machine that was found stands on top."""
    palette = template.PALETTES[mode]
    shown = len(of.machines)
    told = f"{shown} of {of.n_machines:,} machines, those farthest from the median on top"
    chart = template.figure(
        title=f"{of.metric} by machine and time",
        note=f"{told} · {note}" if note else told,
        mode=mode,
        height=max(LEAST_PX, FRAME_PX + ROW_PX * shown),
    )
    known = of.values[np.isfinite(of.values)]
    least, most = np.quantile(known, (0.02, 0.98)).tolist() if known.size else (0.0, 1.0)
    at = _times(of.at, timezone)
    chart.add_heatmap(
        x=at,
        y=list(range(shown)),
        z=[[None if np.isnan(cell) else cell for cell in row] for row in of.values.tolist()],
        zmin=least,
        zmax=most if most > least else least + 1.0,
        colorscale=[[0, template.translucent(palette.series, 0.06)], [1, palette.series]],
        colorbar={"thickness": 10, "len": 0.9, "outlinewidth": 0,
                  "tickfont": {"color": palette.muted}},
        hoverongaps=False,
        customdata=[[name] * len(of.at) for name in of.machines],
        hovertemplate=f"%{{customdata}}, %{{x|{moments.SECOND}}} ({timezone}): %{{z:.4g}}"
        "<extra></extra>",
    )  # fmt: skip
    if of.since_at is not None:
        since = _times(np.array([of.since_at]), timezone)[0]
        chart.add_vline(x=since, line={"color": palette.critical, "width": 1.5, "dash": "dot"})
    named = shown if shown <= MOST_NAMED else 1
    template.name_rows(chart, of.machines, mode)
    chart.update_yaxes(tickvals=list(range(named)), ticktext=list(of.machines[:named]))
    chart.update_xaxes(title=f"Time ({timezone})", showgrid=False, tickformat=moments.TICK_SECOND)
    return chart


def frame(of: HeatMap, **_: object) -> pd.DataFrame:
    """One row a machine and cell of time."""
    n_times = len(of.at)
    return pd.DataFrame(
        {
            "machine": np.repeat(np.array(of.machines, dtype=object), n_times),
            "at": np.tile(pd.to_datetime(of.at, unit="s", utc=True), len(of.machines)),
            of.metric: of.values.ravel(),
        }
    )


def _times(seconds: np.ndarray, timezone: str) -> pd.DatetimeIndex:
    """Times as the axis shows them: plotly knows no zones."""
    return pd.to_datetime(seconds, unit="s", utc=True).tz_convert(timezone).tz_localize(None)
