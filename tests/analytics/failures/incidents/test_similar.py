"""Similar incidents: what counts as shared, and in which order they stand."""

from __future__ import annotations

from datetime import UTC, datetime

from analytics.failures.incidents.similar import Traits, signature, similar


def _traits(name: str, day: int, cause: str, nodes: str = "", seen: str = "") -> Traits:
    at = datetime(2026, 1, day, tzinfo=UTC)
    return Traits(name, at, cause, frozenset(nodes.split()), frozenset(seen.split(",")) - {""})


ONE = _traits("one", 20, "nvlink", "n1 n2", "XID 74,check-nvlink")


def test_those_that_share_most_come_first_then_node_signature_and_the_latest() -> None:
    others = [
        _traits("cause", 19, "nvlink", "n8"),
        _traits("older", 2, "nvlink", "n9"),
        _traits("signature", 1, "hardware", "n7", "XID 74"),
        _traits("node", 1, "pcie", "n2"),
        _traits("all", 1, "nvlink", "n1", "XID 74"),
        _traits("nothing", 19, "pcie", "n5", "XID 79"),
        ONE,
    ]
    found = similar(ONE, others)
    assert [each.incident_id for each in found] == ["all", "node", "signature", "cause", "older"]
    assert (found[0].nodes, found[0].signatures, found[0].cause) == (("n1",), ("XID 74",), True)
    assert similar(ONE, reversed(others)) == found


def test_no_known_cause_is_no_cause_to_share() -> None:
    unknown = _traits("a", 1, "unknown")
    assert similar(unknown, [_traits("b", 2, "unknown")]) == []


def test_a_line_is_known_again_on_another_rank_and_node() -> None:
    lines = ("[rank17] ECC error at 0x7f on gpu0012", "[rank3]  ECC ERROR at 0x9f on gpu0007\n")
    assert len({signature("job_log", line) for line in lines}) == 1
    assert signature("health_event", "XID 48") != signature("health_event", "XID 79")
