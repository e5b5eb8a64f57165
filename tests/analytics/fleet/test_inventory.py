"""Which nodes came and went, told from inventories of all or of some of a cluster."""

from __future__ import annotations

from datetime import UTC, datetime

from analytics.fleet.inventory import membership


def day(number: int) -> datetime:
    return datetime(2024, 3, number, tzinfo=UTC)


ALL = {f"n{number}" for number in range(10)}


def test_a_node_that_is_listed_again_never_went() -> None:
    found = membership([(day(1), ALL), (day(2), ALL - {"n1"}), (day(3), ALL)])
    assert (found.came, found.went) == ({}, {})


def test_a_node_went_at_the_first_whole_inventory_without_it() -> None:
    lacking = ALL - {"n1"}
    found = membership([(day(1), ALL), (day(2), {"n2"}), (day(3), lacking), (day(4), lacking)])
    assert (found.came, found.went) == ({}, {"n1": day(3)})


def test_partitions_listed_in_turn_take_nothing_from_each_other() -> None:
    small, large = {"a", "b"}, {"c", "d", "e"}
    found = membership([(day(1), small), (day(2), large), (day(3), small), (day(4), ALL)])
    assert found.went == {}


def test_half_of_the_nodes_is_not_the_whole_cluster() -> None:
    half = {"n0", "n1", "n2", "n3", "n4"}
    assert membership([(day(1), ALL), (day(2), half)]).went == {}
    assert membership([(day(1), ALL), (day(2), half | {"n5"})]).went == dict.fromkeys(
        ("n6", "n7", "n8", "n9"), day(2)
    )


def test_a_node_that_an_inventory_of_a_part_names_first_may_have_been_there_before() -> None:
    assert membership([(day(1), ALL), (day(2), {"new"})]).came == {}
    assert membership([(day(1), ALL), (day(2), {*ALL, "new"})]).came == {"new": day(2)}


def test_nothing_tells_nothing() -> None:
    assert membership([]).went == membership([(day(1), set())]).went == {}
