"""Causes, symptoms and the labels of other schemes."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from analytics.errors import AnalysisError
from analytics.failures.taxonomy import DOMAINS, taxonomy

PUBLISHED = Path(__file__).parents[2] / "references" / "published_causes.csv"
SHARED = Path(__file__).parents[4] / "shared" / "data"
LANL = SHARED / "lanl" / "LA-UR-05-7318-failure-data-1996-2005.csv"
PNNL = SHARED / "pnnl" / "pnnl_failures_until_2006-11.csv"
LANL_DOMAINS = {
    "Facilities": {"hardware"},
    "Hardware": {"hardware"},
    "Human Error": {"unknown"},
    "Network": {"hardware"},
    "Undetermined": {"unknown"},
    "Software": {"user", "system_software"},
}
TABLE_I = {
    "OOM": {"user"},
    "GPU unavailable": {"system_software", "hardware"},
    "GPU memory errors": {"hardware"},
    "GPU driver/firmware error": {"system_software"},
    "GPU NVLink error": {"hardware"},
    "InfiniBand link": {"hardware"},
    "Filesystem mounts": {"system_software", "hardware"},
    "Main memory errors": {"hardware"},
    "Ethlink errors": {"hardware"},
    "PCIe errors": {"hardware"},
    "NCCL timeout": {"user", "system_software", "hardware"},
    "System services": {"user", "system_software", "hardware"},
}


def test_symptoms_leave_the_domains_of_table_i() -> None:
    by_title = {one.title: set(one.domains) for one in taxonomy().symptoms.values()}
    assert {title: by_title[title] for title in TABLE_I} == TABLE_I


def test_a_cause_lies_in_a_domain_that_its_symptoms_leave() -> None:
    known = taxonomy()
    for symptom in known.symptoms.values():
        for cause in symptom.causes:
            assert known.domain_of(cause) in (*symptom.domains, "unknown"), (symptom.name, cause)


def test_every_cause_has_a_domain_an_owner_an_action_and_a_symptom() -> None:
    known = taxonomy()
    seen = {cause for symptom in known.symptoms.values() for cause in symptom.causes}
    assert seen == set(known.causes)
    for cause in known.causes.values():
        assert cause.domain in DOMAINS
        assert cause.title
        assert cause.component
        assert cause.owner
        assert cause.action.endswith(".")
    assert len({cause.title for cause in known.causes.values()}) == len(known.causes)


def test_an_unknown_cause_is_refused() -> None:
    with pytest.raises(AnalysisError, match=r"got 'gremlins': see .*taxonomy.toml, or add it"):
        taxonomy().domain_of("gremlins")


@pytest.mark.parametrize("call", ["cause_of", "label_of"])
def test_an_unknown_scheme_is_refused(call: str) -> None:
    with pytest.raises(AnalysisError, match=r"scheme must be one of rsc, acme.*, got 'philly'"):
        getattr(taxonomy(), call)("philly", "OOM")


@pytest.mark.parametrize("scheme", ["rsc", "acme", "llama3"])
def test_a_label_comes_back_from_the_cause_it_means(scheme: str) -> None:
    known = taxonomy()
    labels = [label for label, cause in known.schemes[scheme].causes.items() if cause]
    assert [known.label_of(scheme, known.cause_of(scheme, label) or "") for label in labels] == (
        labels
    )


@pytest.mark.parametrize("scheme", list(taxonomy().schemes))
def test_mappings_name_causes_and_labels_that_exist(scheme: str) -> None:
    known, labels = taxonomy(), taxonomy().schemes[scheme]
    assert {cause for cause in labels.causes.values() if cause} <= set(known.causes)
    assert set(labels.further) <= set(known.causes)
    assert set(labels.further.values()) <= set(labels.causes)
    for label, cause in labels.causes.items():  # back and forth again the cause is the same
        if cause:
            assert known.cause_of(scheme, known.label_of(scheme, cause) or "") == cause, label


@pytest.mark.parametrize("scheme", ["llama3", "acme"])
def test_every_label_of_a_published_table_is_mapped(scheme: str) -> None:
    lines = [line for line in PUBLISHED.read_text().splitlines() if not line.startswith("#")]
    labels = {row["label"] for row in csv.DictReader(lines) if row["scheme"] == scheme}
    assert labels == set(taxonomy().schemes[scheme].causes)


def test_the_symptoms_of_table_i_are_the_labels_of_rsc() -> None:
    assert set(taxonomy().schemes["rsc"].causes) == set(TABLE_I)


@pytest.mark.parametrize(
    ("state", "cause"),
    [
        ("TIMEOUT", "time_limit"),
        ("OUT_OF_MEMORY", "host_oom"),
        ("NODE_FAIL", "node_lost"),
        ("CANCELLED by 1001", "cancelled"),
        ("CANCELLED", "cancelled"),
        ("FAILED", "unknown"),
        ("COMPLETED", None),
        ("PREEMPTED", None),
        ("RUNNING", None),
    ],
)
def test_states_of_slurm_mean_a_cause_or_no_failure(state: str, cause: str | None) -> None:
    assert taxonomy().cause_of("slurm", state) == cause


@pytest.mark.parametrize(
    ("check", "cause"),
    [
        ("check-ib", "ib_link"),
        ("check ibstat", "ib_link"),
        ("check_iblink", "ib_link"),
        ("Check-IB interfaces", "ib_link"),
        ("check ib interfaces --verbose", "ib_link"),
        ("nvidia smi ecc_uncorrected", "gpu_memory"),
        ("nvidia-smi ecc-uncorrected volatile", "gpu_memory"),
        ("nvidia smi row_remap_failed", "gpu_memory"),
        ("check-dcgmi nvlink", "nvlink"),
        ("check dcgmi diag", "gpu_fault"),
        ("xid errors", "unknown"),
        ("check-blockdev", "disk"),
        ("check mountpoint", "filesystem_mount"),
        ("check-ethlink", "ethernet_link"),
        ("mce errors", "cpu"),
        ("our own check", None),
        ("check", None),
        ("checkpoint writer", None),
    ],
)
def test_checks_of_gcm_are_known_in_both_spellings(check: str, cause: str | None) -> None:
    assert taxonomy().cause_of("gcm", check) == cause


def test_only_slurm_and_gcm_go_on_after_a_known_label() -> None:
    assert taxonomy().cause_of("acme", "Network card replaced") is None


def test_a_subcause_of_one_cause_is_not_that_of_another() -> None:
    known = taxonomy()
    assert known.cause_of("lanl", "Network") == "network"
    assert known.cause_of("lanl", "Software/Network") == "system_service"
    assert known.cause_of("lanl", "Hardware/CPU") == "cpu"
    assert known.cause_of("lanl", "Hardware/Memory Dimm/CPU") == "host_memory"
    assert known.cause_of("lanl", "Hardware/never heard of") == "hardware"


@pytest.mark.skipif(not LANL.exists(), reason="no ../shared/data/lanl here")
def test_every_cause_of_lanl_is_known_and_in_its_domain() -> None:
    known = taxonomy()
    with LANL.open(encoding="latin-1", newline="") as lines:
        found = {
            (column, row[column].strip())
            for row in csv.DictReader(lines)
            for column in LANL_DOMAINS
            if row[column].strip()
        }
    assert len(found) > 130
    for cause, subcause in found:
        mapped = known.cause_of("lanl", f"{cause}/{subcause}")
        assert mapped is not None
        assert known.domain_of(mapped) in LANL_DOMAINS[cause], (cause, subcause)
        assert known.cause_of("lanl", subcause) is not None, subcause


@pytest.mark.skipif(not PNNL.exists(), reason="no ../shared/data/pnnl here")
def test_every_label_of_pnnl_is_known() -> None:
    with PNNL.open(encoding="latin-1", newline="") as lines:
        found = {row["What Failed"] for row in csv.DictReader(lines)}
    assert found == set(taxonomy().schemes["pnnl"].causes)
    assert len(found) == 24


def test_a_site_adds_a_scheme_and_changes_a_label_without_touching_ours() -> None:
    own = taxonomy({"labels": {"acme": {"ecc": "host_memory"}, "jira": {"HBM": "gpu_memory"}}})
    assert (own.cause_of("acme", "ECC"), taxonomy().cause_of("acme", "ECC")) == (
        "host_memory",
        "gpu_memory",
    )
    assert own.label_of("jira", "gpu_memory") == "HBM"
    assert "jira" not in taxonomy().schemes
