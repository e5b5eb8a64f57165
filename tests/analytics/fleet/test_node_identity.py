"""Which names are one node."""

from __future__ import annotations

import random

import pytest

from analytics.fleet.node_identity import LOG, SCHEDULER, identities, short_name

OTHER_SOURCE = SCHEDULER + 1


def nodes(places: dict[str, int], stated: dict[str, tuple[str, ...]] | None = None) -> set[str]:
    """The nodes of these names."""
    found = identities(places, stated)
    return {found[name].node if name in found else name for name in places}


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        pytest.param({"gpu1": SCHEDULER, "gpu1.hpc.example": LOG}, {"gpu1"}, id="domain"),
        pytest.param({"gpu1": SCHEDULER, "GPU1": LOG}, {"gpu1"}, id="case"),
        pytest.param({"GPU1": SCHEDULER, "gpu1.hpc.example.": LOG}, {"GPU1"}, id="both"),
        pytest.param(
            {"gpu1.a": SCHEDULER, "gpu1": LOG, "gpu1.b": LOG}, {"gpu1.a"}, id="one domain"
        ),
        pytest.param({"n1.a": SCHEDULER, "n1.b": OTHER_SOURCE}, {"n1.a", "n1.b"}, id="two domains"),
        pytest.param({"10.0.0.1": LOG, "10.0.0.2": LOG}, {"10.0.0.1", "10.0.0.2"}, id="addresses"),
        pytest.param({"fe80::1.2": LOG, "fe80::1.3": LOG}, {"fe80::1.2", "fe80::1.3"}, id="IPv6"),
        pytest.param({"1": SCHEDULER, "1.5": LOG}, {"1", "1.5"}, id="numbers"),
        pytest.param({"gpu1": SCHEDULER, "gpu10": LOG}, {"gpu1", "gpu10"}, id="other host"),
    ],
)
def test_names_are_compared_without_case_and_domain(
    places: dict[str, int], expected: set[str]
) -> None:
    assert nodes(places) == expected


def test_a_short_name_in_two_domains_of_the_scheduler_is_left_apart_and_told() -> None:
    places = {"n1.a": SCHEDULER, "n1.b": SCHEDULER, "N1.A": LOG, "n1": LOG, "n1.c": LOG}
    found = identities(places)
    assert found["N1.A"].node == "n1.a"
    assert {name for name, one in found.items() if one.rule == "ambiguous"} == {"n1", "n1.c"}
    assert nodes(places) == {"n1.a", "n1.b", "n1", "n1.c"}


def test_an_alias_holds_in_any_case_and_domain_and_names_no_node() -> None:
    stated = {"gpu1": ("mgmt-1", "10.0.0.17")}
    places = {"GPU1": SCHEDULER, "MGMT-1.bmc.example": LOG, "10.0.0.17": LOG, "10.0.0.18": LOG}
    assert nodes(places, stated) == {"GPU1", "10.0.0.18"}
    assert identities(places, stated)["mgmt-1"].node == "GPU1"  # though no record writes it so
    assert nodes({"mgmt-1": LOG}, stated) == {"gpu1"}
    assert identities({"other": LOG}, stated) == {}


def test_a_node_without_other_names_is_never_taken_for_another() -> None:
    places = {"gpu1": SCHEDULER, "gpu1.b": LOG, "gpu1.c": LOG}
    assert nodes(places, {"gpu1.b": ()}) == {"gpu1", "gpu1.b"}


def test_the_order_of_names_does_not_matter() -> None:
    chance = random.Random(0)
    for _ in range(200):
        hosts = chance.choices(("n1", "N1", "n1.a", "N1.A", "n1.b", "n2.a", "x", "1.2"), k=5)
        places = {host: chance.choice((SCHEDULER, OTHER_SOURCE, LOG)) for host in hosts}
        shuffled = dict(chance.sample([*places.items()], len(places)))
        assert identities(places, {"n2": ("x",)}) == identities(shuffled, {"n2": ("x",)})


def test_a_name_means_a_node_that_means_itself() -> None:
    chance = random.Random(1)
    for _ in range(200):
        hosts = chance.choices(("n1", "N1", "n1.a", "N1.A", "n1.b", "n2.a", "x", "y.a"), k=5)
        places = {host: chance.choice((SCHEDULER, OTHER_SOURCE, LOG)) for host in hosts}
        found = identities(places, {"n2": ("x", "z"), "y.a": ()})
        for one in found.values():
            assert found[one.node].node == one.node if one.node in found else True


def test_a_short_name_is_of_letters() -> None:
    assert short_name("gpu1.hpc.example") == "gpu1"
    assert [short_name(name) for name in ("", ".a", "7.8", "1.2.3.4")] == [
        "",
        ".a",
        "7.8",
        "1.2.3.4",
    ]
