"""Demo clusters that several tests look at, generated once."""

from __future__ import annotations

import pytest

from data.synthetic import DemoCluster, DemoSpec, demo_cluster


@pytest.fixture(scope="session")
def spec() -> DemoSpec:
    return DemoSpec.of(n_jobs=20_000)


@pytest.fixture(scope="session")
def demo(spec: DemoSpec) -> DemoCluster:
    return demo_cluster(spec)


@pytest.fixture(scope="session")
def default_demo() -> DemoCluster:
    return demo_cluster(DemoSpec())
