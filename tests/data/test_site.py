"""site.toml is read as it is meant, and each mistake is told in one line."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

import pytest

from analytics.failures.taxonomy import taxonomy
from data.errors import SiteError
from data.site import Attribution, ClusterSite, Site, load_site

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
"""


def written(root: Path, text: str | bytes) -> Path:
    (root / "site.toml").write_bytes(text.encode() if isinstance(text, str) else text)
    return root


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
    (notice,) = site.notices
    assert notice.endswith("section [alerts] is read by no part of this version")


def test_records_without_a_cluster_belong_to_the_only_one(tmp_path: Path) -> None:
    assert load_site(written(tmp_path, "[cluster.alpha]\n")).default_cluster == "alpha"
    both = written(tmp_path, "[cluster.alpha]\n[cluster.beta]\n")
    assert load_site(both).default_cluster == "cluster"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[cluter.a]\n", r"section \[cluter\] is unknown: did you mean 'cluster'\?"),
        ("[zzz]\n", r"section \[zzz\] is unknown: there are cluster, attribution"),
        ("[cluster.a]\ngpu_per_node = 8\n", r"a\.gpu_per_node is unknown: did you mean 'gpus_per"),
        ("[attribution]\nbefore = 3\n", r"attribution\.before is unknown: did you mean 'before"),
        ("[cluster.a]\ngpus_per_node = '8'\n", r"gpus_per_node must be a whole number > 0"),
        ("[cluster.a]\ngpus_per_node = 0\n", r"gpus_per_node must be .*, got 0: mend it"),
        ("[cluster.a]\ngpus_per_node = true\n", r"gpus_per_node must be .*, got True"),
        ("[cluster.a]\ngpus_per_node = 7.5\n", r"gpus_per_node must be .*, got 7\.5"),
        ("[cluster.a]\ngpu_hour_price = -1\n", r"gpu_hour_price must be a number > 0"),
        ("[cluster.a]\ngpu_hour_price = nan\n", r"gpu_hour_price must be .*, got nan"),
        ("[cluster.a]\ngpu_hour_price = inf\n", r"gpu_hour_price must be .*, got inf"),
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
