"""Ids of incidents stay: derived again, with late data, after merges and splits."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.errors import ShapeError
from analytics.failures.incidents import IncidentTables, carry_over
from analytics.failures.incidents.identity import incident_id

START = pd.Timestamp("2026-01-01", tz="UTC")
NUMBERS = st.integers(0, 12)
GROUPINGS = st.lists(
    st.dictionaries(NUMBERS, st.integers(0, 4), min_size=0, max_size=10), min_size=1, max_size=4
)


def derived(groups: Iterable[Iterable[int]]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A fresh derivation: members are numbers, which are also their minutes."""
    incidents, members = [], []
    for group in groups:
        first = min(group)
        name = incident_id("c", "hardware", "failure", str(first))
        incidents.append((name, "c", START + pd.Timedelta(minutes=first), None, False))
        members += [(name, number) for number in group]
    found = pd.DataFrame(
        incidents, columns=["incident_id", "cluster", "start_at", "superseded_by", "retired"]
    )
    rows = pd.DataFrame(members, columns=["incident_id", "number"]).astype({"number": "int64"})
    at = START + pd.to_timedelta(rows["number"], unit="min")
    rows = rows.assign(kind="failure", key=rows["number"].astype(str), at=at, end_at=at)
    return found, rows.assign(node="n", role="seed", signal="FAILED").drop(columns="number")


def history(*steps: Iterable[Iterable[int]]) -> IncidentTables:
    found = IncidentTables(*derived(()))
    for groups in steps:
        found = carry_over(*derived(groups), found.incidents, found.members)
    return found


def ids(tables: IncidentTables) -> dict[tuple[int, ...], str]:
    keys = tables.members.groupby("incident_id")["key"]
    return {tuple(sorted(map(int, group))): str(name) for name, group in keys}


def successors(tables: IncidentTables) -> dict[str, str | None]:
    gone = tables.incidents[tables.incidents["retired"]]
    return dict(zip(gone["incident_id"], gone["superseded_by"], strict=True))


def test_derived_again_the_ids_are_the_same() -> None:
    groups = [(1, 2), (5,), (7, 9)]
    assert ids(history(groups, groups)) == ids(history(groups))


def test_a_late_earlier_member_keeps_the_id() -> None:
    assert ids(history([(5, 6)], [(2, 5, 6)]))[2, 5, 6] == ids(history([(5, 6)]))[5, 6]


def test_a_merge_keeps_the_oldest_id_and_the_other_points_to_it() -> None:
    before = ids(history([(1, 2), (5, 6)]))
    after = history([(1, 2), (5, 6)], [(1, 2, 5, 6)])
    assert ids(after) == {(1, 2, 5, 6): before[1, 2]}
    assert successors(after) == {before[5, 6]: before[1, 2]}


def test_a_split_leaves_the_id_with_the_earliest_member() -> None:
    before = ids(history([(1, 2, 5)]))
    after = ids(history([(1, 2, 5)], [(1,), (2, 5)]))
    assert after[1,] == before[1, 2, 5]
    assert after[2, 5] != before[1, 2, 5]


def test_a_merge_that_is_split_again_gives_both_their_ids_back() -> None:
    apart = [(1, 2), (5, 6)]
    found = history(apart, [(1, 2, 5, 6)], apart)
    assert ids(found) == ids(history(apart))
    assert successors(found) == {}


def test_chains_of_supersession_point_to_the_living_one() -> None:
    found = history([(1,), (3,), (5,)], [(1,), (3, 5)], [(1, 3, 5)])
    first = ids(found)[1, 3, 5]
    assert set(successors(found).values()) == {first}
    assert len(successors(found)) == 2


def test_a_split_off_part_whose_own_id_is_taken_gets_another_one_that_stays() -> None:
    steps = [[(5, 6)], [(2, 5, 6)], [(2,), (5, 6)]]
    found = history(*steps)
    assert ids(found)[2,] == ids(history([(5, 6)]))[5, 6]
    assert ids(found)[5, 6] != ids(found)[2,]
    assert ids(history(*steps, steps[-1])) == ids(found)


def test_what_is_no_incident_any_more_is_kept_and_has_its_id_again_if_it_comes_back() -> None:
    gone = history([(1,), (5,)], [(1,)])
    name = ids(history([(5,)]))[5,]
    assert successors(gone) == {name: None}
    back = history([(1,), (5,)], [(1,)], [(1,), (5,)])
    assert ids(back)[5,] == name
    assert successors(back) == {}


def test_a_burst_that_grows_at_its_front_is_recognised(cluster) -> None:
    cluster.shows(100, "n1", times=3)
    before = cluster.incidents()
    cluster.shows(99, "n1")
    after = cluster.incidents()
    assert after.incidents["incident_id"].tolist() != before.incidents["incident_id"].tolist()
    carried = carry_over(after.incidents, after.members, before.incidents, before.members)
    assert carried.incidents["incident_id"].tolist() == before.incidents["incident_id"].tolist()


def test_a_finer_cause_of_the_same_domain_keeps_the_id(cluster) -> None:
    cluster.fails(100, "n1", cause="hardware")
    before = cluster.incidents().incidents["incident_id"].tolist()
    cluster.failures[0]["cause"] = "pcie"
    assert cluster.incidents().incidents["incident_id"].tolist() == before
    cluster.failures[0]["domain"] = "system_software"
    assert cluster.incidents().incidents["incident_id"].tolist() != before


def test_the_same_keys_in_two_clusters_are_never_taken_for_one_another(cluster) -> None:
    for name in ("c", "d"):
        cluster.fails(100, "n1", cluster=name, attempt_key="7.0")
        cluster.shows(300, "n1", cluster=name, event_id="e1")
    before = cluster.incidents()
    assert len(before.incidents) == before.incidents["incident_id"].nunique() == 4
    cluster.failures, cluster.events = cluster.failures[:1], cluster.events[:1]
    cluster.shows(299, "n1", event_id="e0")
    after = cluster.incidents()
    carried = carry_over(after.incidents, after.members, before.incidents, before.members)
    ours = before.incidents["cluster"].eq("c")
    gone = carried.incidents["retired"].astype(bool)
    named = carried.incidents["incident_id"]
    assert named[~gone].tolist() == before.incidents.loc[ours, "incident_id"].tolist()
    assert set(named[gone]) == set(before.incidents.loc[~ours, "incident_id"])
    assert set(successors(carried).values()) == {None}


def test_a_store_that_keeps_fewer_columns_is_enough() -> None:
    old = history([(1, 2), (5,)])
    kept = old.incidents.drop(columns="retired")
    found, members = derived([(1, 2, 5)])
    new = carry_over(found.assign(n_jobs=3), members, kept, old.members)
    assert successors(new) == successors(history([(1, 2), (5,)], [(1, 2, 5)]))
    assert new.incidents["n_jobs"].tolist() == [3, pd.NA]


def test_a_missing_column_is_refused() -> None:
    found, members = derived([(1,)])
    with pytest.raises(ShapeError, match="old_members must have the columns"):
        carry_over(found, members, found, members.drop(columns="at"))


def partition(grouping: dict[int, int]) -> list[tuple[int, ...]]:
    groups: dict[int, list[int]] = {}
    for number, group in grouping.items():
        groups.setdefault(group, []).append(number)
    return [tuple(sorted(numbers)) for numbers in groups.values()]


@given(GROUPINGS)
def test_every_id_ever_given_leads_to_a_living_incident_or_to_none(steps: list[dict]) -> None:
    found, given_ids = IncidentTables(*derived(())), set()
    for step in steps:
        found = carry_over(*derived(partition(step)), found.incidents, found.members)
        table = found.incidents
        living = set(table.loc[~table["retired"].astype(bool), "incident_id"])
        assert table["incident_id"].is_unique
        assert living == set(found.members["incident_id"])
        assert len(living) == len(partition(step))
        given_ids |= living
        assert given_ids == set(table["incident_id"])
        assert set(successors(found).values()) <= living | {None}


@given(GROUPINGS)
def test_derivation_run_again_changes_nothing(steps: list[dict]) -> None:
    once = history(*map(partition, steps))
    again = carry_over(*derived(partition(steps[-1])), once.incidents, once.members)
    pd.testing.assert_frame_equal(once.incidents, again.incidents)
    pd.testing.assert_frame_equal(once.members, again.members)


@pytest.mark.slow
@given(GROUPINGS, st.integers(0, 99))
def test_the_order_of_rows_does_not_matter(steps: list[dict], seed: int) -> None:
    one = other = IncidentTables(*derived(()))
    for step in steps:
        new, members = derived(partition(step))
        one = carry_over(new, members, one.incidents, one.members)
        parts = (new, members, other.incidents, other.members)
        other = carry_over(*(part.sample(frac=1, random_state=seed) for part in parts))
    pd.testing.assert_frame_equal(one.incidents, other.incidents)
    pd.testing.assert_frame_equal(one.members, other.members)


@given(
    st.dictionaries(NUMBERS, st.integers(0, 4), min_size=1),
    st.dictionaries(NUMBERS, st.integers(0, 4)),
)
def test_the_part_with_the_earliest_surviving_member_is_the_heir(before: dict, after: dict) -> None:
    old, new = history(partition(before)), history(partition(before), partition(after))
    holder = {number: name for group, name in ids(new).items() for number in group}
    for group, name in ids(old).items():
        surviving = [number for number in group if number in holder]
        expected = holder[min(surviving)] if surviving else None
        assert name == expected or successors(new)[name] == expected
