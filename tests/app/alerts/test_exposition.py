"""What Prometheus reads: the format, what is not known left out, and a file in one step."""

from __future__ import annotations

import re
import stat
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.alerts import exposition
from app.alerts.exposition import Told, of_store
from data.alerts import Figure
from data.deliveries import Deliveries
from data.errors import DataError
from data.site_alerts import Receiver
from data.state import State
from tests.app.alerts.made import NOW, alert, keep, queued, site

if TYPE_CHECKING:
    from pathlib import Path

LINE = re.compile(
    r"(?:# (?:HELP [a-z_0-9]+ [^\n]+|TYPE [a-z_0-9]+ (?:gauge|counter))"
    r'|([a-z_0-9]+)(?:\{(?:[a-z_]+="(?:[^"\\\n]|\\[\\n"])*",?)*\})? [-+.e0-9]+)'
)
"""A line of the text format 0.0.4, as its documentation states it."""


def samples(text: str) -> dict[str, float]:
    assert text.endswith("\n")
    lines = text.removesuffix("\n").split("\n")
    assert all(LINE.fullmatch(line) for line in lines), text
    read = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in read}


def test_before_rules_were_asked_no_count_of_alerts_is_told(tmp_path: Path) -> None:
    assert "alerts" not in of_store(tmp_path, NOW)


def test_open_alerts_are_told_with_their_state(tmp_path: Path) -> None:
    where = site(Receiver("team", address="http://127.0.0.1:9/"))
    other = alert("a2", target="incident:i1", severity="critical", rules=("mass", "new_lemon"))
    muted = alert("a3", target="action:x", rules=("hang",))
    over = alert("a4", resolved_at="2026-03-01T13:00:00+00:00")
    queued(tmp_path, where, alert(), other, muted, over)
    state = State(tmp_path)
    state.annotate("incident:i1", "status", "acknowledged", author="ann")
    state.annotate(
        "rule:hang", "snoozed_until", (NOW + timedelta(hours=1)).isoformat(), author="ann"
    )
    state.annotate(
        "rule:mass", "snoozed_until", (NOW - timedelta(hours=1)).isoformat(), author="ann"
    )
    keep(Deliveries(tmp_path), figures=(Figure("per_1000", "c", 4.5, 3.0, None),))
    found = samples(of_store(tmp_path, NOW))
    assert {name for name in found if name.startswith("faultline_alert{")} == {
        'faultline_alert{alert_id="a1",rule="new_lemon",severity="warning",cluster="c",state="open"}',
        'faultline_alert{alert_id="a2",rule="mass",severity="critical",cluster="c",state="acknowledged"}',
        'faultline_alert{alert_id="a3",rule="hang",severity="warning",cluster="c",state="muted"}',
    }  # fmt: skip
    assert found['faultline_alerts_open{severity="critical",state="acknowledged"}'] == 1
    assert found['faultline_alerts_open{severity="critical",state="open"}'] == 0
    assert found["faultline_last_evaluation_timestamp_seconds"] == NOW.timestamp()
    assert found['faultline_deliveries_waiting{receiver="team"}'] == 4
    assert found['faultline_deliveries_failed_total{receiver="team"}'] == 0
    assert found['faultline_per_1000{cluster="c"}'] == 4.5
    assert found['faultline_per_1000_lower{cluster="c"}'] == 3.0
    assert 'faultline_per_1000_upper{cluster="c"}' not in found, "what is not known is left out"


@settings(max_examples=30)
@given(st.text(max_size=12))
def test_no_name_of_a_cluster_breaks_the_format(name: str) -> None:
    told = Told([(alert(cluster=name), "open")], [], NOW, [Figure("rate", name, 1.0)])
    (line,) = (
        one for one in exposition.exposition(told).split("\n") if one.startswith("faultline_alert{")
    )
    assert LINE.fullmatch(line)


def test_the_text_file_comes_in_one_step_and_others_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "faultline.prom"
    for text in ("a 1\n", "a 2\n"):
        exposition.write(path, text)
        assert path.read_text() == text
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert [*tmp_path.iterdir()] == [path]


def test_a_text_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"alerts\.textfile: .* cannot be written \(No such file"):
        exposition.write(tmp_path / "none" / "faultline.prom", "a 1\n")
