"""Slow links: a fabric that is not the detector's model, and shapes that it cannot make."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from analytics.errors import OutOfRangeError, ShapeError
from analytics.nodes.links.samples import DelaySamples
from analytics.nodes.links.verdict import slow_links

sys.path.insert(0, str(Path(__file__).parent))
from fabrics import KINDS, case


def is_right(kind: str, seed: int) -> bool:
    """Whether the verdict names the kind, the ends and the hosts of what was made slow."""
    made = case(kind, seed)
    found = slow_links(made.samples)
    if made.verdict == "none" or not found.findings:
        return found.verdict == made.verdict
    first = found.findings[0]
    named = (first.verdict, first.source, first.destination) == (
        kind,
        made.source,
        made.destination,
    )
    return named and (kind != "group" or set(first.hosts) == made.hosts)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, "none"])
def test_99_of_100_are_told_apart(kind: str) -> None:
    assert sum(is_right(kind, seed) for seed in range(1000, 1100)) >= 99


@pytest.mark.parametrize("kind", [*KINDS, "none"])
def test_each_kind_is_named_with_its_ends(kind: str) -> None:
    assert is_right(kind, 500)


def samples(n: int, repeated: int = 4, *, noise: float = 0.03, seed: int = 1) -> DelaySamples:
    """All pairs of n hosts, alike."""
    source, destination = (np.tile(each, repeated) for each in np.nonzero(~np.eye(n, dtype=bool)))
    delay = 20 * np.random.default_rng(seed).lognormal(0, noise, len(source))
    return DelaySamples(tuple(f"h{at}" for at in range(n)), source, destination, delay)


def slower(made: DelaySamples, which: np.ndarray, factor: float = 2.5) -> DelaySamples:
    delay = np.where(which, made.delay_us * factor, made.delay_us)
    return DelaySamples(
        made.names,
        made.source,
        made.destination,
        delay,
        made.size_bytes,
        made.host_of,
        made.group_of,
    )


@pytest.mark.parametrize("n", [4, 6, 12])
def test_a_slow_sender_of_a_small_matrix_is_no_link(n: int) -> None:
    made = samples(n)
    found = slow_links(slower(made, made.source == 1))
    assert (found.verdict, found.findings[0].source, found.findings[0].destination) == (
        "sender",
        "h1",
        None,
    )
    ratio = found.findings[0].ratio
    assert ratio.lower < 2.5 < ratio.upper or ratio.value == pytest.approx(2.5, rel=0.05)
    assert ratio.n == n - 1


def test_a_bandwidth_fault_shows_in_large_messages_alone() -> None:
    small, large = samples(16, seed=2), samples(16, seed=3)
    hit = (large.source == 3) & (large.destination == 9)
    both = DelaySamples(
        small.names,
        np.concatenate([small.source, large.source]),
        np.concatenate([small.destination, large.destination]),
        np.concatenate([small.delay_us, slower(large, hit, 3.0).delay_us * 400]),
        np.repeat([8.0, 1e8], len(small.source)),
    )
    first = slow_links(both).findings[0]
    assert (first.verdict, first.source, first.destination) == ("link", "h3", "h9")
    assert dict(first.by_size) == {
        (8.0,): pytest.approx(1.0, rel=0.1),
        (1e8,): pytest.approx(3.0, rel=0.1),
    }


def test_a_link_slow_in_both_directions_is_one_finding() -> None:
    made = samples(12)
    ends = {3, 7}
    hit = np.array(
        [
            {a, b} == ends
            for a, b in zip(made.source.tolist(), made.destination.tolist(), strict=True)
        ]
    )
    found = slow_links(slower(made, hit))
    assert [(each.verdict, each.way, set(each.hosts)) for each in found.findings] == [
        ("link", "both", {"h3", "h7"})
    ]


def test_a_host_slow_both_ways_is_a_group_of_one() -> None:
    made = samples(12)
    found = slow_links(slower(made, (made.source == 5) | (made.destination == 5)))
    assert [(each.verdict, each.way, each.hosts) for each in found.findings] == [
        ("group", "either", ("h5",))
    ]


def test_two_slow_links_are_both_told() -> None:
    made = samples(16)
    hit = ((made.source == 1) & (made.destination == 2)) | (
        (made.source == 8) & (made.destination == 5)
    )
    found = slow_links(slower(made, hit))
    assert {(each.source, each.destination) for each in found.findings} == {
        ("h1", "h2"),
        ("h8", "h5"),
    }


def test_nvlink_inside_hosts_is_no_fast_group_and_its_slow_host_is_named() -> None:
    names = tuple(f"n{host}:{gpu}" for host in range(6) for gpu in range(4))
    made = samples(24)
    host = np.arange(24) // 4
    inside = host[made.source] == host[made.destination]
    delay = np.where(inside, made.delay_us / 10, made.delay_us)
    fine = DelaySamples(names, made.source, made.destination, delay)
    assert slow_links(fine).findings == ()
    found = slow_links(slower(fine, inside & (host[made.source] == 2)))
    assert [(each.verdict, each.level, each.hosts) for each in found.findings] == [
        ("group", "inside", ("n2",))
    ]


def test_a_slow_uplink_is_named_where_switches_are_stated_or_not() -> None:
    made = samples(24)
    leaf = np.arange(24) // 6
    out = (leaf[made.source] == 1) & (leaf[made.destination] != 1)
    members = {f"h{at}" for at in range(6, 12)}
    stated = {f"h{at}": f"leaf{leaf[at]}" for at in range(24)}
    for groups in ({}, stated):
        one = DelaySamples(
            made.names, made.source, made.destination, made.delay_us, group_of=groups
        )
        first = slow_links(slower(one, out)).findings[0]
        assert (first.verdict, first.way, set(first.hosts)) == ("group", "out", members)


def test_two_switches_with_a_slower_way_between_are_no_fault() -> None:
    made = samples(16)
    far = (made.source < 8) != (made.destination < 8)
    found = slow_links(slower(made, far, 1.6))
    assert (found.verdict, found.groups_found, len(found.groups)) == ("none", True, 2)


def test_a_burst_that_lifts_some_samples_of_a_pair_is_no_slow_link() -> None:
    made = samples(8, 4)
    hit = (made.source == 2) & (made.destination == 6)
    hit &= np.arange(len(hit)) < 2 * 56  # two of its four samples
    assert slow_links(slower(made, hit, 6.0)).verdict == "none"


def test_equal_delays_in_whole_microseconds_hold_no_fault() -> None:
    made = samples(8)
    assert (
        slow_links(
            DelaySamples(made.names, made.source, made.destination, np.round(made.delay_us / 5) * 5)
        ).verdict
        == "none"
    )
    flat = DelaySamples(made.names, made.source, made.destination, np.full(len(made.source), 12.0))
    assert slow_links(flat).verdict == "none"


def test_of_two_hosts_nothing_is_told_apart() -> None:
    made = samples(2)
    found = slow_links(slower(made, made.source == 0, 10.0))
    assert (found.verdict, found.findings) == ("none", ())


def test_a_link_whose_sender_has_no_other_pair_may_be_the_sender() -> None:
    made = samples(12)
    kept = (made.source != 4) | (made.destination == 0)
    thin = DelaySamples(made.names, made.source[kept], made.destination[kept], made.delay_us[kept])
    first = slow_links(slower(thin, thin.source == 4, 4.0)).findings[0]
    assert (set(first.hosts) >= {"h4"}, first.may_be_end or first.n_unmeasured == 10) == (
        True,
        True,
    )


def test_less_slow_than_asked_for_is_not_named() -> None:
    made = samples(16)
    hit = made.source == 3
    assert slow_links(slower(made, hit, 1.5), least_ratio=2.0).verdict == "none"
    assert slow_links(slower(made, hit, 1.5)).verdict == "sender"


def test_what_cannot_be_judged_is_refused() -> None:
    made = samples(4)
    with pytest.raises(OutOfRangeError, match=r"least_ratio must be > 1, got 0\.5"):
        slow_links(made, least_ratio=0.5)
    with pytest.raises(OutOfRangeError, match="delay_us must be finite and > 0"):
        DelaySamples(made.names, made.source, made.destination, made.delay_us * 0)
    with pytest.raises(ShapeError, match="differ in length"):
        DelaySamples(made.names, made.source[1:], made.destination, made.delay_us)
    none = np.array([], dtype=np.int64)
    with pytest.raises(OutOfRangeError, match="at least one pair"):
        slow_links(DelaySamples(("a", "b"), none, none, none + 1.0))
