"""Figures of the history of one job and of one node."""

from __future__ import annotations

import pandas as pd

from app.figures.failures import attempts, domains, node_history

AT = pd.Timestamp("2026-01-05T00:00", tz="UTC")
HOUR = pd.Timedelta(hours=1)
PERIOD = (AT, AT + 24 * HOUR)
TITLES = {"pcie": "PCIe error (bus)"}


def _attempts(n: int = 2) -> pd.DataFrame:
    """The first n - 1 failed, the last one runs."""
    rows = [
        {
            "cluster": "c",
            "job_id": "7",
            "attempt": i + 1,
            "state": "FAILED" if i < n - 1 else "RUNNING",
            "submit_at": AT + 3 * i * HOUR,
            "start_at": AT + (3 * i + 1) * HOUR,
            "end_at": AT + (3 * i + 3) * HOUR if i < n - 1 else pd.NaT,
            "cause": "pcie" if i < n - 1 else None,
            "domain": "hardware" if i < n - 1 else None,
            "here": i < n - 1,
        }
        for i in range(n)
    ]
    return pd.DataFrame(rows)


def _history() -> pd.DataFrame:
    columns = ["kind", "key", "start_at", "end_at", "what", "severity", "text"]
    rows = [
        ("health_event", "e1", AT, pd.NaT, "xid 79", "fatal", "pid='<unknown>', fell off"),
        ("health_event", "e2", AT, pd.NaT, "check", "odd", None),
        ("node_event", "o1", AT, AT + HOUR, "DOWN", None, "gone"),
        ("node_event", "o2", AT + 2 * HOUR, pd.NaT, "planned MAINT", None, "update"),
        ("ticket", "t1", pd.NaT, pd.NaT, "gpu", None, "swap"),
    ]
    frame = pd.DataFrame(rows, columns=columns)
    for column in ("start_at", "end_at"):
        frame[column] = pd.to_datetime(frame[column], utc=True)
    return frame


def _figure(frame: pd.DataFrame, zone: str = "UTC") -> dict:
    return attempts.figure(frame, titles=TITLES, timezone=zone).to_dict()


def _node(history: pd.DataFrame, ran: pd.DataFrame) -> dict:
    return node_history.figure(history, ran, titles=TITLES, period=PERIOD, timezone="UTC").to_dict()


def test_waiting_and_running_lie_on_one_axis() -> None:
    figure = _figure(_attempts())
    queued, running = figure["data"][:2]
    assert (queued["name"], running["name"]) == ("queued", "running")
    assert [x / 3_600_000 for x in queued["x"]] == [1.0, 1.0]
    assert [x / 3_600_000 for x in running["x"]] == [2.0, 0.0]
    assert figure["layout"]["xaxis"]["title"]["text"] == "Time (UTC)"


def test_an_end_has_the_colour_of_its_domain_and_says_its_cause() -> None:
    figure = _figure(_attempts())
    (end,) = (trace for trace in figure["data"] if trace["name"] == "end")
    assert end["marker"]["color"] == domains.colour("hardware", "light")
    texts = [note["text"] for note in figure["layout"]["annotations"]]
    assert texts == ["FAILED: PCIe error", "RUNNING, no end recorded"]


def test_names_and_states_are_shown_as_written() -> None:
    array = _attempts(3).assign(job_id=["<b>7", "7_2", "7_3"], state="<i>ODD")
    figure = attempts.figure(array, titles=TITLES, timezone="UTC", note="<a>x").to_dict()
    assert figure["layout"]["yaxis"]["ticktext"][0] == "&lt;b>7 · attempt 1"
    assert figure["layout"]["title"]["subtitle"]["text"].endswith(" · &lt;a>x")
    assert all("<" not in note["text"] for note in figure["layout"]["annotations"])


def test_times_are_in_the_clusters_zone_with_utc_on_hover() -> None:
    running = _figure(_attempts(), "Europe/Berlin")["data"][1]
    assert str(running["base"][0]) == "2026-01-05 02:00:00"
    assert "CET" in running["customdata"][0]
    assert "UTC" in running["customdata"][0]


def test_many_attempts_show_the_latest_and_say_so() -> None:
    figure = _figure(_attempts(60))
    assert len(figure["layout"]["yaxis"]["ticktext"]) == attempts.MAX_ATTEMPTS
    assert "20 earlier attempts" in figure["layout"]["title"]["subtitle"]["text"]


def test_an_attempt_that_never_started_only_waits() -> None:
    never = _attempts(1).assign(start_at=pd.NaT, end_at=AT + HOUR, state="CANCELLED")
    never["start_at"] = pd.to_datetime(never["start_at"], utc=True)
    queued, running = _figure(never)["data"][:2]
    assert len(queued["y"]) == 1
    assert len(running["y"]) == 0


def test_tasks_of_an_array_are_told_apart() -> None:
    array = _attempts(3).assign(job_id=["7_1", "7_2", "7_3"])
    assert _figure(array)["layout"]["yaxis"]["ticktext"][0] == "7_1 · attempt 1"


def test_a_node_shows_only_rows_that_hold_something() -> None:
    figure = _node(_history(), _attempts())
    assert figure["layout"]["yaxis"]["categoryarray"] == [
        "jobs", "fatal", "unknown severity", "out of service", "tickets",
    ]  # fmt: skip


def test_an_open_outage_lasts_to_the_end_of_the_period_and_planned_ones_are_outlined() -> None:
    bars = [t for t in _node(_history(), _attempts())["data"] if t["name"] == "out of service"]
    assert [[x / 3_600_000 for x in bar["x"]] for bar in bars] == [[1.0], [22.0]]
    assert bars[1]["marker"]["line"]["width"] > 0
    assert "no end recorded" in bars[1]["customdata"][0]


def test_texts_of_logs_are_shown_as_written() -> None:
    events = next(t for t in _node(_history(), _attempts())["data"] if t["name"] == "fatal")
    assert "&lt;unknown&gt;" in events["customdata"][0]


def test_failed_attempts_are_marked_large_where_the_node_ended_them() -> None:
    figure = _node(_history(), _attempts(3))
    here = next(trace for trace in figure["data"] if trace["name"] == "failed here")
    other = next(trace for trace in figure["data"] if trace["name"] == "failed")
    assert (len(here["x"]), len(other["x"])) == (2, 0)
    assert "PCIe error" in here["customdata"][0]


def test_a_node_without_any_record_is_an_empty_figure() -> None:
    assert _node(_history().head(0), _attempts().head(0))["layout"]["yaxis"]["categoryarray"] == []
