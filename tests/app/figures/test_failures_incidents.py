"""Figures of incidents: what is drawn, named and coloured."""

from __future__ import annotations

import pandas as pd
import pytest

from analytics.failures.incident_rate import IncidentCause
from analytics.failures.incidents.incident import Lane, Mark, Timeline
from app.answers.failures import incident
from app.figures.failures import incidents_by_cause, timeline
from app.figures.template import PALETTES, Mode

AT = pd.Timestamp("2026-01-05T12:00Z")
CAUSES = (
    IncidentCause("ib_link", "InfiniBand link (port)", "hardware", 2, 30, 1500.0),
    IncidentCause("node_lost", "Node lost", "unknown", 1, 1, 10.0),
)
ROWS = pd.DataFrame(
    {
        "incident_id": ["a", "b", "c"],
        "start_at": [AT, AT + pd.Timedelta(days=1), AT],
        "cause": ["ib_link", "ib_link", "node_lost"],
        "domain": ["hardware", "hardware", "unknown"],
        "lost_gpu_hours": [1500.0, 0.0, 10.0],
        "n_jobs": [30, 0, 1],
        "summary": ["port down", "<b>hostile</b>", "lost"],
    }
)


def _marks() -> Timeline:
    """A failure after a critical event, with an outage that has not ended."""
    hour = pd.Timedelta(hours=1)
    run = Mark(AT - 9 * hour, AT, "running", "NODE_FAIL", "job 7", lasts=True)
    end = Mark(AT, None, "seed", "NODE_FAIL", "job 7 <b>ended</b>", domain="hardware")
    down = Mark(AT, None, "consequence", "outage", "node DOWN", lasts=True)
    event = Mark(AT - hour / 60, None, "seed", "XID 79", "off the bus", severity="fatal", n=3)
    return Timeline(
        (
            Lane("scheduler", "job 7", (run, end)),
            Lane("node state", "n<1>", (down,)),
            Lane("kernel", "n1", (event,)),
        ),
        AT - hour,
        AT + hour,
        AT - hour / 60,
    )


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_each_incident_is_a_mark_that_leads_to_it(mode: Mode) -> None:
    drawn = incidents_by_cause.figure(ROWS, CAUSES, timezone="UTC", total=3, mode=mode).to_dict()
    marks = [trace for trace in drawn["data"] if trace["name"] == "incidents"]
    ids = [data[0] for trace in marks for data in trace["customdata"]]
    assert sorted(ids) == ["a", "b", "c"]
    assert "&lt;b&gt;hostile&lt;/b&gt;" in str(marks[0]["customdata"])
    colours = marks[0]["marker"]["line"]["color"]
    assert set(colours) == {PALETTES[mode].hardware}


def test_axes_carry_their_units() -> None:
    drawn = incidents_by_cause.figure(ROWS, CAUSES, timezone="Asia/Tokyo", total=3).to_dict()
    assert "GPU-hours" in drawn["layout"]["xaxis2"]["title"]["text"]
    assert "Asia/Tokyo" in drawn["layout"]["xaxis"]["title"]["text"]
    assert drawn["layout"]["yaxis"]["ticktext"] == ["InfiniBand link", "Node lost"]


def test_it_says_when_not_all_incidents_are_drawn() -> None:
    drawn = incidents_by_cause.figure(ROWS, CAUSES, timezone="UTC", total=5000).to_dict()
    assert "latest 3 of 5,000 incidents" in drawn["layout"]["title"]["subtitle"]["text"]


def test_a_loss_that_is_not_known_is_drawn_small() -> None:
    unknown = ROWS.assign(lost_gpu_hours=[float("nan")] * 3)
    drawn = incidents_by_cause.figure(unknown, CAUSES, timezone="UTC", total=3).to_dict()
    sizes = [
        size for t in drawn["data"] if t["name"] == "incidents" for size in t["marker"]["size"]
    ]
    assert sizes == [incidents_by_cause.SMALLEST] * 3


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_the_timeline_tells_roles_apart(mode: Mode) -> None:
    drawn = timeline.figure(_marks(), timezone="UTC", mode=mode).to_dict()
    seeds = [trace for trace in drawn["data"] if trace["name"] == "seed"]
    assert [trace["marker"]["color"][0] for trace in seeds] == [
        PALETTES[mode].hardware,
        PALETTES[mode].fatal,
    ]
    assert drawn["layout"]["xaxis"]["title"]["text"] == "Time (UTC)"
    assert drawn["layout"]["yaxis"]["ticktext"] == [
        "scheduler · job 7",
        "node state · n&lt;1&gt;",
        "kernel · n1",
    ]


def test_runs_and_outages_are_cut_at_the_ends_of_the_axis() -> None:
    drawn = timeline.figure(_marks(), timezone="UTC").to_dict()
    run, outage = (trace for trace in drawn["data"] if trace["type"] == "bar")
    assert run["base"][0] == pd.Timestamp("2026-01-05T11:00")
    assert outage["x"][0] == 3_600_000
    assert "no end recorded" in outage["customdata"][0]


def test_hover_says_the_number_and_both_zones() -> None:
    drawn = timeline.figure(_marks(), timezone="Asia/Tokyo").to_dict()
    (says,) = (t["customdata"][0] for t in drawn["data"] if "off the bus" in str(t["customdata"]))
    assert "3 alike" in says
    assert "20:59:00 JST" in says
    assert "11:59:00 UTC" in says


def test_the_lines_name_the_beginning() -> None:
    drawn = timeline.figure(_marks(), timezone="UTC").to_dict()
    texts = [each["text"] for each in drawn["layout"]["annotations"]]
    assert "began, 11:59:00" in texts


def test_only_the_first_moment_is_called_the_beginning() -> None:
    hour = pd.Timedelta(hours=1)
    lanes = [
        Lane("scheduler", f"job {n}", (Mark(at, None, "seed", "FAILED", "ended"),))
        for n, at in ((7, AT), (8, AT + hour), (9, AT + hour))
    ]
    drawn = timeline.figure(
        Timeline(tuple(lanes), AT - hour, AT + 2 * hour, AT), timezone="UTC"
    ).to_dict()
    texts = [each["text"] for each in drawn["layout"]["annotations"]]
    assert [text for text in texts if "ended" in text] == [
        "began: job 7 ended, 12:00:00",
        "job 8 ended, 13:00:00",
    ]


def test_days_are_written_as_everywhere_else() -> None:
    drawn = incidents_by_cause.figure(ROWS, CAUSES, timezone="UTC", total=3).to_dict()
    assert drawn["layout"]["xaxis"]["tickformat"] == "%H:%M\n%-d %b %Y"
    weeks = ROWS.assign(start_at=[AT, AT + pd.Timedelta(days=30), AT])
    drawn = incidents_by_cause.figure(weeks, CAUSES, timezone="UTC", total=3).to_dict()
    assert drawn["layout"]["xaxis"]["tickformat"] == "%-d %b\n%Y"
    assert drawn["layout"]["xaxis2"]["tickformat"] == ","


def test_the_download_holds_every_mark() -> None:
    assert len(incident.marks(_marks()).frame()) == 4
