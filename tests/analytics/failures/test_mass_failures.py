"""Mass failures: what the rule takes for one, and what it leaves alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from analytics.errors import ShapeError
from analytics.failures.mass_failures import mass_failures

START = pd.Timestamp("2026-03-01T00:00Z")


def _rows(minutes: object, **said: object) -> pd.DataFrame:
    """Failures at these minutes."""
    at = START + pd.to_timedelta(np.asarray(minutes, float), unit="min")
    own = {"cluster": "c", "user": "u", "node": None, "cause": "unknown", "held_gpu_seconds": 36.0}
    return pd.DataFrame({"failed_at": at} | own | said)


def _over_time(n: int, **said: object) -> pd.DataFrame:
    """Failures one after the other over four weeks."""
    return _rows(np.linspace(0, 40_320, n), **said)


def test_998_of_1016_failures_by_one_user_within_two_minutes_are_one() -> None:
    crowd = _rows(5000 + np.linspace(0, 2, 998), user="eve", cause="import_error")
    rest = _over_time(18, user="eve", cause="cuda_oom")
    others = pd.concat(
        [_rows(np.linspace(50 * n, 39_000 + 60 * n, 40), user=f"u{n}") for n in range(20)]
    )
    (found,) = mass_failures(pd.concat([rest, others, crowd]).sample(frac=1, random_state=0,
                                                                     ignore_index=True))  # fmt: skip
    assert (found.by, found.name, found.failures, found.of_failures) == ("user", "eve", 998, 1016)
    assert (found.cause, found.of_cause) == ("import_error", 998)
    assert found.last_at - found.first_at == pd.Timedelta(minutes=2)
    assert found.held_gpu_hours == pytest.approx(9.98)
    assert found.key == "c/user/eve/2026-03-04"


def test_a_user_who_always_fails_much_is_no_mass_failure_but_a_crowd_of_theirs_is() -> None:
    steady = _over_time(40_320, user="ci")  # one a minute, 10 in any window
    assert mass_failures(steady) == ()
    doubled = pd.concat([steady, _rows(np.linspace(900, 905, 60), user="ci")])
    assert mass_failures(doubled.reset_index(drop=True)) == (), "not ten times as many as usual"
    many = pd.concat([steady, _rows(np.linspace(900, 905, 300), user="ci")])
    (found,) = mass_failures(many.reset_index(drop=True))
    assert 300 <= found.failures <= 330


def test_what_users_do_not_share_a_node_or_a_cause_does_and_nothing_counts_twice() -> None:
    on_node = pd.concat(
        [_rows([700 + n / 10], user=f"a{n}", node="n7", cause="unknown") for n in range(30)]
    )
    anonymous = _rows(np.linspace(9000, 9003, 25), user=None, cause="nccl_timeout")
    far = _over_time(5, user="z")
    found = mass_failures(pd.concat([on_node, anonymous, far], ignore_index=True))
    assert [(each.by, each.name, each.failures) for each in found] == [
        ("node", "n7", 30),
        ("cause", "nccl_timeout", 25),
    ]


def test_failures_of_many_users_without_a_cause_have_nothing_in_common() -> None:
    crowd = pd.concat([_rows([700 + n / 10], user=f"a{n}") for n in range(30)], ignore_index=True)
    assert mass_failures(crowd) == ()


def test_windows_that_share_failures_are_one_and_others_are_two() -> None:
    long = _rows(np.linspace(100, 140, 200))
    later = _rows(np.linspace(300, 304, 50))
    found = mass_failures(pd.concat([long, later, _over_time(3)], ignore_index=True))
    assert sorted(each.failures for each in found) == [50, 200]


def test_19_failures_are_none_20_are_one_and_two_clusters_are_two() -> None:
    far = _over_time(3, user="z")
    nineteen = pd.concat([far, _rows([700.0] * 19)], ignore_index=True)
    assert mass_failures(nineteen) == ()
    twenty = pd.concat([far, _rows([700.0] * 20)], ignore_index=True)
    assert [each.failures for each in mass_failures(twenty)] == [20]
    split = pd.concat(
        [far, _rows([700.0] * 10), _rows([700.0] * 10, cluster="d")], ignore_index=True
    )
    assert mass_failures(split) == ()


def test_records_that_are_nothing_but_one_crowd_are_one() -> None:
    (found,) = mass_failures(_rows(np.linspace(0, 2, 500), held_gpu_seconds=None))
    assert found.failures == 500
    assert found.held_gpu_hours is None, "no record states GPUs"


def test_nothing_and_nonsense() -> None:
    none = _rows([])
    assert mass_failures(none) == ()
    timeless = _rows([1.0] * 30).assign(failed_at=pd.DatetimeIndex([None] * 30, tz="UTC"))
    assert mass_failures(timeless) == ()
    with pytest.raises(ShapeError, match="failures must have the columns"):
        mass_failures(none.drop(columns="user"))
