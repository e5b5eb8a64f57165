"""The demo: a synthetic GPU cluster, calibrated on published figures, and the truth behind it."""

from data.synthetic.cluster import DemoCluster, demo_cluster
from data.synthetic.spec import DemoSpec, DemoSpecError
from data.synthetic.truth import DemoTruth

__all__ = ["DemoCluster", "DemoSpec", "DemoSpecError", "DemoTruth", "demo_cluster"]
