"""Evidence is weighed into verdicts as Table I and the rule of attribution ask."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.errors import AnalysisError, ShapeError
from analytics.failures.attribution import Verdicts, attribute, clock_offsets
from analytics.failures.evidence import COLUMNS, evidence_frame, of_events, of_reason
from analytics.failures.precedence import weights
from analytics.failures.taxonomy import taxonomy

TABLE = weights()


def attempt(number: int = 0, state: str = "FAILED", **more: Any) -> dict[str, Any]:
    row = {"attempt": number, "state": state, "exit_signal": 0, "failed_node": None,
           "only_node": None}  # fmt: skip
    return row | more


def piece(cause: str | None, odds: float = 30.0, **more: Any) -> dict[str, Any]:
    row = {"attempt": 0, "kind": "health_event", "key": f"{cause} {more.get('kind', '')}",
           "node": "n1", "offset_s": -20.0, "cause": cause, "odds": odds, "scope": "node",
           "job_named": None, "causal_ratio": 1.0, "cluster": "a", "text": ""}  # fmt: skip
    return row | more


def judged(attempts: list[dict[str, Any]], evidence: list[dict[str, Any]]) -> Verdicts:
    columns = list(piece(None))
    return attribute(pd.DataFrame(attempts), pd.DataFrame(evidence, columns=columns), TABLE)


def verdict(*evidence: dict[str, Any], **of_attempt: Any) -> tuple[str, str]:
    (found,) = judged([attempt(**of_attempt)], list(evidence)).verdicts.to_dict("records")
    return found["cause"], found["domain"]


@pytest.mark.parametrize(
    ("state", "cause", "domain", "confidence", "method"),
    [
        ("FAILED", "unknown", "unknown", 0.0, "none"),
        ("NODE_FAIL", "node_lost", "unknown", 0.0, "none"),
        ("BOOT_FAIL", "node_lost", "unknown", 0.0, "none"),
        ("REQUEUED", "requeued", "unknown", 0.0, "none"),
        ("TIMEOUT", "time_limit", "user", 0.99, "scheduler"),
        ("OUT_OF_MEMORY", "host_oom", "user", 0.99, "scheduler"),
    ],
)
def test_without_evidence_only_what_the_scheduler_states_is_known(
    state: str, cause: str, domain: str, confidence: float, method: str
) -> None:
    (found,) = judged([attempt(state=state)], []).verdicts.to_dict("records")
    assert (found["cause"], found["domain"], found["method"]) == (cause, domain, method)
    assert found["confidence"] == pytest.approx(confidence)


def test_a_lost_node_that_the_scheduler_names_is_the_node_of_the_verdict() -> None:
    found = judged([attempt(state="NODE_FAIL", failed_node="n7")], []).verdicts
    assert found["node"].tolist() == ["n7"]


def test_the_share_of_a_cause_is_its_odds_over_all_odds_and_one() -> None:
    found = judged([attempt()], [piece("nvlink", 30.0), piece("power", 9.0)])
    assert found.verdicts["confidence"].tolist() == pytest.approx([30 / 40])
    assert found.alternatives[["cause", "confidence"]].values.tolist() == [["power", 9 / 40]]


def test_kinds_of_evidence_add_up_and_repeats_of_one_kind_do_not() -> None:
    one = judged([attempt()], [piece("nvlink")] * 5).verdicts["confidence"].item()
    two = judged([attempt()], [piece("nvlink"), piece("nvlink", 12.0, kind="node_event")])
    assert one == pytest.approx(30 / 31)
    assert two.verdicts["confidence"].item() == pytest.approx(42 / 43)


def test_causes_of_one_domain_stand_together() -> None:
    found = verdict(piece("gpu_memory"), piece("power", 29.0), piece("key_error", 20.0, kind="x"))
    assert found == ("key_error", "user")  # the log of a program excludes the fault of a node
    assert verdict(piece("gpu_memory"), piece("power", 29.0)) == ("gpu_memory", "hardware")


def test_evidence_against_each_other_in_even_parts_is_unknown() -> None:
    assert verdict(piece("gpu_memory", 5.0), piece("cuda_oom", 5.0, kind="job_log")) == (
        "unknown",
        "unknown",
    )


@pytest.mark.parametrize(
    ("proximate", "behind"),
    [
        ("nccl_timeout", "gpu_memory"),
        ("nccl_remote_error", "ib_link"),
        ("gpu_unavailable", "pcie"),
        ("cuda_error", "nvlink"),
        ("node_lost", "power"),
        ("connection_error", "filesystem_mount"),
    ],
)
def test_a_proximate_cause_gives_way_to_what_explains_it(proximate: str, behind: str) -> None:
    found = judged([attempt()], [piece(proximate, 60.0, kind="job_log"), piece(behind, 12.0)])
    assert found.verdicts["cause"].tolist() == [behind]
    roles = dict(zip(found.evidence["cause"], found.evidence["role"], strict=True))
    assert roles == {proximate: "consequence", behind: "cause"}
    assert found.alternatives["reason"].tolist() == ["follows the cause"]


def test_a_proximate_cause_with_nothing_behind_it_stands() -> None:
    assert verdict(piece("gpu_unavailable", 60.0)) == ("gpu_unavailable", "hardware")
    assert verdict(piece("nccl_timeout", 9.0, kind="job_log")) == ("nccl_timeout", "unknown")


def test_evidence_says_whether_it_speaks_for_the_verdict_or_for_another_cause() -> None:
    found = judged(
        [attempt()],
        [piece("gpu_memory", 30.0), piece("ib_link", 2.0, kind="node_event"),
         piece("gpu_thermal", 0.0, key="mild"), piece(None, 0.0, key="mute")],
    )  # fmt: skip
    assert found.verdicts["cause"].tolist() == ["gpu_memory"]
    said = found.evidence[["cause", "role", "why"]].astype(object)
    assert said.where(said.notna(), None).values.tolist() == [
        ["gpu_memory", "cause", ""],
        ["ib_link", "other", "speaks for another cause"],
        ["gpu_thermal", "context", "too mild to be the cause"],
        [None, "context", "names no cause"],
    ]


def test_where_no_cause_has_enough_no_evidence_speaks_for_the_verdict() -> None:
    found = judged([attempt()], [piece("gpu_memory", 0.5)])
    assert found.verdicts["cause"].tolist() == ["unknown"]
    assert found.evidence["role"].tolist() == ["other"]


def test_a_lost_node_excludes_the_program() -> None:
    log = piece("key_error", 20.0, kind="job_log")
    assert verdict(log, state="NODE_FAIL") == ("node_lost", "unknown")
    assert verdict(log, failed_node="n1") == ("node_lost", "unknown")
    assert verdict(log) == ("key_error", "user")


def test_gpu_memory_exhausted_on_a_faulty_node_is_the_nodes_fault() -> None:
    log = piece("cuda_oom", 19.0, kind="job_log")
    found = judged([attempt()], [log, piece("gpu_memory", 30.0)])
    assert found.verdicts["cause"].tolist() == ["gpu_memory"]
    assert found.alternatives["cause"].tolist() == ["cuda_oom"]


def test_a_check_that_fires_as_often_around_successes_says_nothing() -> None:
    found = judged([attempt()], [piece("power", 30.0, causal_ratio=0.0)])
    assert found.verdicts["cause"].tolist() == ["unknown"]
    assert found.evidence["why"].tolist() == ["as frequent around successful jobs"]


def test_the_evidence_that_leads_names_the_node() -> None:
    found = judged(
        [attempt()],
        [
            piece("nvlink", 30.0, node="late", offset_s=10.0),
            piece("nvlink", 30.0, node="early", offset_s=-50.0),
            piece("nvlink", 12.0, node="weak", offset_s=-90.0),
        ],
    )
    assert found.verdicts["node"].tolist() == ["early"]


def test_a_line_about_one_process_belongs_to_one_attempt() -> None:
    line = {"scope": "process", "key": "line"}
    near = piece("illegal_memory_access", 12.0, attempt=0, offset_s=-3.0, **line)
    far = piece("illegal_memory_access", 12.0, attempt=1, offset_s=-60.0, **line)
    attempts = [attempt(0), attempt(1)]
    assert judged(attempts, [far, near]).verdicts["cause"].tolist() == [
        "illegal_memory_access",
        "unknown",
    ]
    named = judged(attempts, [far | {"job_named": True}, near | {"job_named": False}])
    assert named.verdicts["cause"].tolist() == ["unknown", "illegal_memory_access"]


def test_lines_of_one_key_in_two_clusters_are_two_lines() -> None:
    line = {"scope": "process", "key": "line"}
    found = judged(
        [attempt(0), attempt(1)],
        [
            piece("illegal_memory_access", 12.0, attempt=0, offset_s=-3.0, cluster="a", **line),
            piece("illegal_memory_access", 12.0, attempt=1, offset_s=-60.0, cluster="b", **line),
        ],
    )
    assert found.verdicts["cause"].tolist() == ["illegal_memory_access"] * 2


def test_a_line_about_a_process_long_before_the_end_does_not_count() -> None:
    line = piece("illegal_memory_access", 12.0, scope="process", offset_s=-400.0)
    assert verdict(line) == ("unknown", "unknown")


@pytest.mark.parametrize("skew_s", [-60.0, 0.0, 47.5, 60.0])
def test_clocks_that_differ_are_seen_in_where_lines_pile_up(skew_s: float) -> None:
    rows = []
    for number in range(40):
        own = {"attempt": number, "key": number, "offset_s": skew_s - 2.0}
        other = {"attempt": number + 100, "key": number, "offset_s": (number * 37) % 170 - 90.0}
        rows += [own, other]
    pairs = pd.DataFrame(rows).assign(cluster="a", node="n")
    found = clock_offsets(pairs)
    assert found.nunique() == 1
    assert found.iloc[0] == pytest.approx(skew_s - 2.0, abs=2.5)


def test_clocks_are_taken_as_right_where_lines_do_not_agree() -> None:
    pairs = pd.DataFrame(
        {"cluster": "a", "node": "n", "key": range(6), "offset_s": [-90, -50, -10, 20, 60, 100]}
    )
    assert clock_offsets(pairs).tolist() == [0.0] * 6


CAUSES = ["gpu_memory", "nvlink", "pcie", "cuda_oom", "key_error", "node_lost", "nccl_timeout",
          "filesystem_mount", "gpu_unavailable", None]  # fmt: skip
PIECES = st.lists(
    st.builds(
        piece,
        st.sampled_from(CAUSES),
        st.sampled_from([0.0, 1.5, 6.0, 12.0, 30.0, 60.0]),
        attempt=st.integers(0, 3),
        kind=st.sampled_from(["health_event", "node_event", "job_log", "scheduler"]),
        offset_s=st.sampled_from([-500.0, -30.0, 0.0, 100.0]),
        scope=st.sampled_from(["node", "process"]),
        causal_ratio=st.sampled_from([0.0, 0.5, 1.0]),
    ),
    max_size=12,
)
STATES = st.lists(
    st.sampled_from(["FAILED", "NODE_FAIL", "TIMEOUT", "REQUEUED"]), min_size=4, max_size=4
)


@settings(deadline=None, derandomize=True)
@given(PIECES, STATES, st.randoms(use_true_random=False))
def test_shares_are_shares_and_the_order_of_evidence_does_not_matter(
    evidence: list[dict[str, Any]], states: list[str], chance: Any
) -> None:
    evidence = [one | {"key": str(place)} for place, one in enumerate(evidence)]
    attempts = [attempt(number, state) for number, state in enumerate(states)]
    found = judged(attempts, evidence)
    assert found.verdicts["confidence"].between(0, 1).all()
    others = found.alternatives.groupby("attempt")["confidence"].sum()
    total = found.verdicts.set_index("attempt")["confidence"].add(others, fill_value=0)
    assert total.le(1 + 1e-9).all()
    known = found.verdicts["domain"].ne("unknown")
    assert found.verdicts.loc[known, "confidence"].gt(0).all()
    assert len(found.evidence) >= len(evidence)
    chance.shuffle(evidence)
    again = judged(attempts, evidence)
    pd.testing.assert_frame_equal(again.verdicts, found.verdicts)


@settings(deadline=None, derandomize=True)
@given(st.floats(1.0, 1000.0), st.floats(1.1, 50.0))
def test_stronger_evidence_never_lowers_confidence(odds: float, factor: float) -> None:
    weak, strong = (
        judged([attempt()], [piece("nvlink", one), piece("power", 5.0)])
        .verdicts.set_index("attempt")["confidence"]
        .item()
        for one in (odds + 5, (odds + 5) * factor)
    )
    assert strong > weak


def events(*rows: dict[str, Any]) -> pd.DataFrame:
    blank = {"check_name": "xid", "severity": None, "xid": None, "sxid": None,
             "source": "kernel", "message": None}  # fmt: skip
    return pd.DataFrame([blank | row for row in rows])


@pytest.mark.parametrize(
    ("row", "cause", "kind", "scope"),
    [
        ({"xid": 79, "severity": "fatal"}, "gpu_unavailable", "fatal", "node"),
        ({"xid": 48, "severity": "critical"}, "gpu_memory", "critical", "node"),
        ({"xid": 31, "severity": "warning"}, "illegal_memory_access", "process", "process"),
        ({"xid": 43, "severity": "info"}, "illegal_memory_access", "process", "process"),
        ({"xid": 63, "severity": "info"}, "gpu_memory", None, "node"),
        ({"xid": 45, "severity": "critical"}, None, None, "node"),
        (
            {"check_name": "check-ipmitool", "source": "health_check", "severity": "critical",
             "message": "PSU 2 failure detected, power redundancy lost"},
            "power", "critical", "node",
        ),
        (
            {"check_name": "check-ipmitool", "source": "health_check", "severity": "critical",
             "message": "SEL: Critical Interrupt, PCIe fatal error asserted"},
            "pcie", "critical", "node",
        ),
        (
            {"check_name": "check-storage", "source": "health_check", "severity": "warning",
             "message": "/scratch is 91 % full"},
            "filesystem_mount", None, "node",
        ),
        (
            {"check_name": "a check of our own", "source": "health_check", "severity": "fatal",
             "message": "something is wrong"},
            None, None, "node",
        ),
    ],
)  # fmt: skip
def test_an_event_speaks_by_its_severity_and_its_text(
    row: dict[str, Any], cause: str | None, kind: str | None, scope: str
) -> None:
    (found,) = of_events(events(row), TABLE).to_dict("records")
    assert found["cause"] == cause
    assert found["odds"] == (TABLE.odds[kind] if kind else 0.0)
    assert found["scope"] == scope


@pytest.mark.parametrize(
    ("reason", "cause", "speaks"),
    [
        ("Not responding", "node_lost", True),
        ("check-ib: port 1 state DOWN", "ib_link", True),
        ("xid: double bit ECC error reported by the framebuffer", "gpu_memory", True),
        ("check-dcgmi: warning, drained for inspection", None, False),
        ("Kill task failed", "operating_system", True),
        ("NHC: nvidia-smi: GPU 3 is lost", "gpu_unavailable", True),
        ("gres/gpu count reported lower than configured (7 < 8)", "gpu_unavailable", True),
        ("NHC: nv_health: Xid 79", "gpu_unavailable", True),
        ("XID error: 48 on GPU 3", "gpu_memory", True),
        ("coolant leak under the rack", "cooling", True),
        ("leak detected", "cooling", True),
        ("check_fs_mount: /scratch", "filesystem_mount", True),
        ("processes in D state", "operating_system", True),
        ("clocks_throttle_reasons.hw_slowdown active", "gpu_thermal", True),
        ("HW Power Brake Slowdown", "power", True),
        ("volatile_ecc errors", "gpu_memory", True),
        ("leaf switch 7 rebooted", "network", True),
        ("alice wants this one", None, False),
        ("rebecca looks at it", None, False),
        ("memory leak in slurmd", None, False),
        ("a large amount of jobs failed", None, False),
        ("job requeued in held state", None, False),
        ("all jobs slow: slowdown since noon", None, False),
        ("switched to the test partition", None, False),
        ("Xid 31 seen once", None, False),
        ("xid 99999", None, False),
        ("", None, False),
    ],
)
def test_a_reason_speaks_by_its_text(reason: str, cause: str | None, speaks: bool) -> None:
    found, odds = of_reason(reason, "node_event", TABLE)
    assert (odds > 0) == speaks
    if cause is not None:
        assert found == cause


@pytest.mark.parametrize(
    "reason",
    ["Prolog", "ReqNodeNotAvail, Reserved for maintenance", "PartitionDown", "Cleaning",
     "ReqNodeNotAvail, UnavailableNodes:switch-node[1-2]"],
)  # fmt: skip
def test_a_reason_for_which_a_job_only_waited_says_nothing_of_its_end(reason: str) -> None:
    assert of_reason(reason, "scheduler", TABLE) == (None, 0.0)


def test_a_reason_for_which_the_scheduler_ended_a_job_speaks() -> None:
    said = of_reason("Prolog error", "scheduler", TABLE)
    assert said == ("node_configuration", TABLE.odds["reason"])


def test_a_site_puts_its_rules_and_weights_before_ours() -> None:
    own = weights(
        {
            "weights": {"critical": 5},
            "rules": [{"check": "gpu-burn", "text": "mismatch", "cause": "silent_corruption"}],
        },
        taxonomy(),
    )
    assert own.odds["critical"] == 5
    assert own.cause_of("gpu-burn", "mismatch in tile 4") == "silent_corruption"
    assert TABLE.cause_of("gpu-burn", "mismatch in tile 4") is None


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"weights": {"severe": 3}}, "attribution.weights.severe is unknown: there are fatal"),
        ({"weights": {"fatal": -1}}, r"weights.fatal must be odds >= 0, got -1"),
        ({"rules": [{"text": "("}]}, "a rule has check, text and cause"),
        ({"rules": [{"text": "(", "cause": "pcie"}]}, r"must be a regular expression, got '\('"),
        ({"rules": [{"text": "a", "cause": "gremlins"}]}, "cause must be one of the taxonomy's"),
    ],
)
def test_a_mistake_in_the_table_is_told(section: dict[str, Any], message: str) -> None:
    with pytest.raises(AnalysisError, match=message):
        weights(section, taxonomy())


def test_evidence_has_one_shape_whatever_its_sources_state() -> None:
    whole = pd.DataFrame([piece("nvlink", xid=74, severity="fatal"), piece("power")])
    bare = pd.DataFrame([piece(None)]).drop(columns=["cluster", "text"])
    for parts in ([], [whole], [bare, whole], [bare.iloc[:0], whole]):
        frame = evidence_frame(parts)
        assert {name: str(kind) for name, kind in frame.dtypes.items()} == COLUMNS
        assert len(frame) == sum(map(len, parts))
    assert evidence_frame([bare])["cluster"].tolist() == [None]


def test_evidence_without_a_needed_column_or_of_another_type_is_refused() -> None:
    whole = pd.DataFrame([piece("nvlink")])
    with pytest.raises(ShapeError, match="got none named odds, scope: select them"):
        evidence_frame([whole.drop(columns=["odds", "scope"])])
    with pytest.raises(ShapeError, match=r"offset_s must be float64 .*: convert it"):
        evidence_frame([whole.assign(offset_s="soon")])
