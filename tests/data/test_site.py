"""site.toml is read as it is meant, and each mistake is told in one line."""

from __future__ import annotations

import hashlib
import re
from dataclasses import asdict
from typing import TYPE_CHECKING

import pytest

from analytics.efficiency.run_rule import GENERIC_NAMES, RunRule
from analytics.failures.taxonomy import taxonomy
from data.errors import SiteError
from data.limits import DEFAULTS, RANGES, Limits
from data.site import Assumed, Attribution, ClusterSite, Runs, Site, load_site

if TYPE_CHECKING:
    from pathlib import Path

WHOLE = """\
[cluster.alpha]
gpus_per_node = 8
gpu_model = "H100"
timezone = "Europe/Berlin"
scheduler = "slurm"
gpu_hour_price = 2.5
currency = "EUR"

[cluster.beta]

[attribution]
before_minutes = 30
after_minutes = 0

[alerts]
off = ["unknown_share"]
"""


def written(root: Path, text: str | bytes) -> Path:
    (root / "site.toml").write_bytes(text.encode() if isinstance(text, str) else text)
    return root


def test_limits_are_read_and_the_others_stay(tmp_path: Path) -> None:
    site = load_site(written(tmp_path, "[limits]\nline_mb = 2.5\nfields = 99\n"))
    assert site.limits == Limits(line_mb=2.5, fields=99)
    assert site.limits.line_bytes == 2_500_000


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("line_mb = 0", r"limits\.line_mb must be a number from 0\.001 to 1,000, got 0: mend it"),
        ("fields = 9.5", r"limits\.fields must be a whole number from 16 to 100,000, got 9\.5"),
        ("json_depth = true", r"limits\.json_depth must be a whole number from 4 to 500, got True"),
        ("unpacked_gb = nan", r"limits\.unpacked_gb must be a number from .*, got nan"),
        ('upload_minutes = "5"', r"limits\.upload_minutes must be a number from .*, got '5'"),
        ("upload_memory = 1", r"limits\.upload_memory is unknown: did you mean 'upload_memory_mb'"),
    ],
)
def test_a_limit_that_cannot_hold_is_refused(tmp_path: Path, line: str, told: str) -> None:
    with pytest.raises(SiteError, match=told):
        load_site(written(tmp_path, f"[limits]\n{line}\n"))


def test_every_limit_has_a_range_around_its_default() -> None:
    assert RANGES.keys() == asdict(DEFAULTS).keys()
    for name, (least, most) in RANGES.items():
        assert least < getattr(DEFAULTS, name) < most


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    site = load_site(tmp_path)
    assert site == Site(sha256=hashlib.sha256(b"").hexdigest())
    assert (site.default_cluster, site.timezones) == ("cluster", {})
    assert site.attribution == Attribution(10.0, 5.0)


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_every_key_is_read(tmp_path: Path, mark: str) -> None:
    site = load_site(written(tmp_path, mark + WHOLE))
    assert site.clusters == {
        "alpha": ClusterSite(8, "H100", "Europe/Berlin", "slurm", 2.5, "EUR"),
        "beta": ClusterSite(),
    }
    assert site.attribution == Attribution(30, 0)
    assert site.timezones == {"alpha": "Europe/Berlin"}
    assert site.sha256 == hashlib.sha256((mark + WHOLE).encode()).hexdigest()
    assert site.alerts.off == ("unknown_share",)


def test_records_without_a_cluster_belong_to_the_only_one(tmp_path: Path) -> None:
    assert load_site(written(tmp_path, "[cluster.alpha]\n")).default_cluster == "alpha"
    both = written(tmp_path, "[cluster.alpha]\n[cluster.beta]\n")
    assert load_site(both).default_cluster == "cluster"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"[cluster.a]\ngpu_model = '{'x' * 201}'\n", "gpu_model must be at most 200 characters"),
        (f"[cluster.a]\ngpus_per_node = {'9' * 5000}\n", "is not TOML"),
        (f"[cluster.a]\nx = {'[' * 5000}{']' * 5000}\n", "is nested too deeply"),
        (f"# {'long' * 250_001}\n", "is larger than 1,000,000 bytes"),
    ],
    ids=["long name", "long number", "deep list", "large file"],
)
def test_what_is_huge_or_deep_is_refused_in_one_short_line(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(SiteError, match=message) as refused:
        load_site(written(tmp_path, text))
    assert len(str(refused.value).replace(str(tmp_path), "")) < 250
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[cluter.a]\n", r"site\.toml: cluter is unknown: did you mean 'cluster'\?"),
        ("[zzz]\n", r"site\.toml: zzz is unknown: there are cluster, attribution"),
        ("[cluster.a]\ngpu_per_node = 8\n", r"a\.gpu_per_node is unknown: did you mean 'gpus_per"),
        ("[attribution]\nbefore = 3\n", r"attribution\.before is unknown: did you mean 'before"),
        ("[cluster.a]\ngpus_per_node = '8'\n", r"gpus_per_node must be a whole number > 0"),
        ('[cluster.""]\n', r'\[cluster\.""\] has no name'),
        ("[cluster.a]\ngpus_per_node = 0\n", r"gpus_per_node must be .*, got 0: mend it"),
        ("[cluster.a]\ngpus_per_node = true\n", r"gpus_per_node must be .*, got True"),
        ("[cluster.a]\ngpus_per_node = 7.5\n", r"gpus_per_node must be .*, got 7\.5"),
        ("[cluster.a]\ngpu_hour_price = -1\n", r"gpu_hour_price must be a number > 0"),
        ("[cluster.a]\ngpu_hour_price = nan\n", r"gpu_hour_price must be .*, got nan"),
        ("[cluster.a]\ngpu_hour_price = inf\n", r"gpu_hour_price must be .*, got inf"),
        (f"[cluster.a]\ngpus_per_node = {10**30}\n", r"whole number > 0, at most 1,024, .*got 1000"),
        ("[cluster.a]\ngpu_hour_price = 1e300\n", r"a number > 0, at most 1,000,000"),
        ("[cluster.a]\ncurrency = 5\n", r"cluster\.a\.currency must be text, got 5: quote it"),
        ("[cluster.a]\ntimezone = 5\n", r"cluster\.a\.timezone must be text, got 5: quote it"),
        (
            "[cluster.a]\ntimezone = 'Europe/Berln'\n",
            r"timezone must be an IANA zone, got 'Europe/Berln': did you mean 'Europe/Berlin'\?",
        ),
        ("[cluster.a]\ntimezone = '!'\n", r"must be an IANA zone, got '!': e\.g\. 'Europe/Berlin'"),
        ("[attribution]\nafter_minutes = 'x'\n", r"must be minutes from 0 to 1440, got 'x'"),
        ("[attribution]\nafter_minutes = -1\n", r"must be minutes from 0 to 1440, got -1"),
        ("[attribution]\nafter_minutes = nan\n", r"must be minutes from 0 to 1440, got nan"),
        ("[attribution]\nafter_minutes = true\n", r"must be minutes from 0 to 1440, got True"),
        ("cluster = 3\n", r"cluster must be a section, got 3: write \[cluster\.<name>\]"),
        ("[cluster]\ngpus_per_node = 8\n", r"must be a section, got 8: write \[cluster\.<name>\]"),
        ("attribution = 3\n", r"attribution must be a section, got 3: write \[attribution\]"),
        ("[cluster.a\n", r"is not TOML \(.*line 1.*\): mend that place"),
        ("[cluster.a]\n[cluster.a]\n", r"is not TOML \(.*\)"),
        (b"[cluster.a]\ngpu_model = '\xff'\n", r"is not TOML \(.*utf-8.*\)"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_in_one_line(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(SiteError, match=message) as refused:
        load_site(written(tmp_path, text))
    assert re.match(re.escape(str(tmp_path / "site.toml")), str(refused.value))
    assert "\n" not in str(refused.value)


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "site.toml").mkdir()
    with pytest.raises(SiteError, match=r"site\.toml: cannot be read \(Is a directory\)"):
        load_site(tmp_path)


TAXONOMY = """\
[taxonomy.causes.licence]
title = "No licence left"
domain = "system_software"

[taxonomy.causes.gpu_memory]
owner = "GPU team"

[taxonomy.labels.acme]
"Licence" = "licence"

[taxonomy.labels.ours]
"bad HBM" = "gpu_memory"
"""


def test_a_site_adds_causes_and_labels_and_changes_owners(tmp_path: Path) -> None:
    own = taxonomy(load_site(written(tmp_path, TAXONOMY)).taxonomy)
    assert (own.domain_of("licence"), own.causes["licence"].owner) == (
        "system_software",
        "cluster operations",
    )
    assert own.causes["gpu_memory"].owner == "GPU team"
    assert own.causes["gpu_memory"].title == taxonomy().causes["gpu_memory"].title
    assert (own.cause_of("acme", "licence"), own.cause_of("acme", "ECC")) == (
        "licence",
        "gpu_memory",
    )
    assert own.cause_of("ours", "Bad  HBM") == "gpu_memory"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("taxonomy = 3", "taxonomy must be a section"),
        ("[taxonomy.cause.x]", "taxonomy.cause is unknown: there are causes and labels"),
        ("[taxonomy]\ncauses = 3", "taxonomy.causes must be a section, got 3"),
        ("[taxonomy.causes]\nx = 3", "taxonomy.causes.x must be a section"),
        (
            '[taxonomy.causes.x]\ntitle = "X"',
            "taxonomy.causes.x.domain is missing: a new cause needs title and domain",
        ),
        (
            '[taxonomy.causes.x]\ntitle = "X"\ndomain = "software"',
            "taxonomy.causes.x.domain must be one of user, system_software, hardware, unknown",
        ),
        ('[taxonomy.causes.pcie]\nowners = "me"', "taxonomy.causes.pcie.owners is unknown"),
        ("[taxonomy.causes.pcie]\nowner = 3", "taxonomy.causes.pcie.owner must be text, got 3"),
        ("[taxonomy.causes.pcie]\ndomain = [1]", "taxonomy.causes.pcie.domain must be text"),
        (
            '[taxonomy.labels.acme]\n"Fan" = "fan"',
            "taxonomy.labels.acme.\"Fan\" must name a cause, got 'fan'",
        ),
        ('[taxonomy.labels.acme]\n"Fan" = ["pcie"]', "must name a cause, got ['pcie']"),
    ],
)
def test_a_mistake_in_the_taxonomy_is_told(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SiteError, match=re.escape(said)):
        load_site(written(tmp_path, text))


RUNS = """\
[runs]
requeue_gap_days = 7
arrays = "apart"
array_min_gpus = 16
names = "apart"
name_min_gpus = 64
gap_hours = 6.5
after_completed = true
max_overlap_ratio = 0
generic_names = ["train"]
checkpoint_interval_min = [30, 60]
checkpoint_write_min = 0
restart_min = 12.5

[runs.one_node]
checkpoint_interval_min = 15
restart_min = [0, 3]
"""


def test_without_a_section_of_runs_its_defaults_hold(tmp_path: Path) -> None:
    assert load_site(tmp_path).runs == Runs(RunRule(), Assumed(), Assumed())
    assert Assumed() == Assumed(interval_s=None, write_s=None, restart_s=None)
    assert RunRule() == RunRule(
        30, "chain", None, "chain", None, 24, False, 0.1, GENERIC_NAMES
    )  # fmt: skip


def test_every_key_of_runs_is_read_and_minutes_become_seconds(tmp_path: Path) -> None:
    assert load_site(written(tmp_path, RUNS)).runs == Runs(
        RunRule(7, "apart", 16, "apart", 64, 6.5, True, 0, ("train",)),
        Assumed((1800, 3600), (0, 0), (750, 750)),
        Assumed((900, 900), None, (0, 180)),
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("runs = 3", "runs must be a section, got 3: write [runs]"),
        ("[runs]\none_node = 3", "runs.one_node must be a section, got 3: write [runs.one_node]"),
        ("[runs]\ngap_hour = 3", "runs.gap_hour is unknown: did you mean 'gap_hours'?"),
        ("[runs]\nrestart = 3", "runs.restart is unknown: did you mean 'restart_min'?"),
        ("[runs.one_nod]", "runs.one_nod is unknown: did you mean 'one_node'?"),
        (
            "[runs.one_node]\ncheckpoint_interval = 3",
            "runs.one_node.checkpoint_interval is unknown: did you mean 'checkpoint_interval_min'?",
        ),
        ("[runs.one_node]\ngap_hours = 3", "runs.one_node.gap_hours is unknown: there are chec"),
        ("[runs]\ngap_hours = 0", "runs.gap_hours must be hours > 0, at most 8,760, got 0"),
        ("[runs]\ngap_hours = inf", "runs.gap_hours must be hours > 0, at most 8,760, got inf"),
        ("[runs]\ngap_hours = true", "runs.gap_hours must be hours > 0, at most 8,760, got True"),
        ("[runs]\nrequeue_gap_days = nan", "requeue_gap_days must be days > 0, at most 36,500"),
        ("[runs]\nrequeue_gap_days = '3'", "requeue_gap_days must be days > 0, at most 36,500"),
        ("[runs]\narrays = 'join'", 'runs.arrays must be "chain" or "apart", got \'join\''),
        ("[runs]\nnames = true", 'runs.names must be "chain" or "apart", got True'),
        ("[runs]\nnames = []", 'runs.names must be "chain" or "apart", got []'),
        ("[runs]\nname_min_gpus = 0", "runs.name_min_gpus must be a whole number > 0, got 0"),
        ("[runs]\narray_min_gpus = 2.5", "array_min_gpus must be a whole number > 0, got 2.5"),
        ("[runs]\nafter_completed = 1", "runs.after_completed must be true or false, got 1"),
        ("[runs]\nmax_overlap_ratio = 1.5", "max_overlap_ratio must be a number from 0 to 1"),
        ("[runs]\ngeneric_names = 'x'", "runs.generic_names must be a list of names, got 'x'"),
        ("[runs]\ngeneric_names = [1]", "runs.generic_names must be a list of names, got [1]"),
        (
            "[runs]\ncheckpoint_interval_min = 0",
            "runs.checkpoint_interval_min must be minutes > 0, at most a year, or a range of them, got 0",
        ),
        ("[runs]\ncheckpoint_interval_min = [0, 9]", "must be minutes > 0, at most a year, or"),
        ("[runs]\ncheckpoint_write_min = -1", "must be minutes >= 0, at most a year, or a range"),
        ("[runs]\ncheckpoint_write_min = nan", "must be minutes >= 0, at most a year, or a rang"),
        ("[runs]\nrestart_min = [1, 2, 3]", "or a range of them, got [1, 2, 3]"),
        ("[runs]\nrestart_min = []", "or a range of them, got []"),
        ("[runs]\nrestart_min = true", "or a range of them, got True"),
        ("[runs]\nrestart_min = 1e400", "or a range of them, got inf"),
        ("[runs]\nrestart_min = 9999999", "or a range of them, got 9999999"),
        (
            "[runs.one_node]\nrestart_min = [3, 2]",
            "runs.one_node.restart_min must be a range [low, high], got [3, 2]: swap its ends",
        ),
    ],
)
def test_a_mistake_in_runs_is_told(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SiteError, match=re.escape(said)) as refused:
        load_site(written(tmp_path, text))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("stated", "address"),
    [
        ("https://faultline.example.org", "https://faultline.example.org/"),
        ("http://10.0.0.7:8501/ops/", "http://10.0.0.7:8501/ops/"),
        ("", ""),
    ],
)
def test_the_address_of_the_dashboard_ends_in_a_slash(
    tmp_path: Path, stated: str, address: str
) -> None:
    assert load_site(written(tmp_path, f'[reports]\naddress = "{stated}"\n')).address == address


@pytest.mark.parametrize(
    "stated",
    [
        "3", '"faultline.example.org"', '"javascript:alert(1)"', '"https://"', '"https://a/?x=1"',
        '"https://a/?"', '"https://a/#"', '"https://:word@a/"',
        '"https://me:word@a/"', '"https://a:99999/"', '"https://[a/"', '"https://a/<b"',
        f'"https://a/{"x" * 300}"',
    ],
)  # fmt: skip
def test_what_is_no_address_is_told_in_one_line(tmp_path: Path, stated: str) -> None:
    with pytest.raises(SiteError, match=r"reports\.address must be the dashboard's address"):
        load_site(written(tmp_path, f"[reports]\naddress = {stated}\n"))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('key = "sk"', "key must not stand in a file"),
        ('address = "http://h/v1"', "needs model"),
        ('address = "http://u:p@h/v1"\nmodel = "m"', "address must be an address"),
        ('address = "ftp://h"\nmodel = "m"', "address must be an address"),
        ('address = "http://h"\nmodel = "a\\nb"', "model must be text on one line"),
        ('address = "http://h"\nmodel = "m"\ntimeout_s = 0', "timeout_s must be seconds > 0"),
        ('address = "http://h"\nmodel = "m"\nmax_characters = 5', "max_characters must be"),
    ],
)
def test_mistakes_of_the_language_model_are_told(tmp_path: Path, line: str, told: str) -> None:
    with pytest.raises(SiteError, match=told):
        load_site(written(tmp_path, f"[language_model]\n{line}\n"))


def test_without_its_section_there_is_no_language_model(tmp_path: Path) -> None:
    assert load_site(written(tmp_path, "")).language_model.address == ""
    stated = '[language_model]\naddress = "http://h:8000/v1"\nmodel = "m"\ntimeout_s = 5\n'
    model = load_site(written(tmp_path, stated)).language_model
    assert (model.address, model.model, model.timeout_s) == ("http://h:8000/v1", "m", 5)
