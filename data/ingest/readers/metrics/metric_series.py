"""Of which node, GPU and metric the samples of a Prometheus series are."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

from data.ingest.reader import RecordError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from data.ingest.reader import Options

NO_NODE = "no Hostname, node or instance label: pass --node"
_NODES = ("Hostname", "hostname", "exported_node", "node", "nodename", "kubernetes_node", "host",
          "exported_instance", "instance")  # fmt: skip
_PORT = re.compile(r":\d+\Z")
_NOWHERE = frozenset({"", "localhost", "127.0.0.1", "::1", "0.0.0.0"})
_CHANGING = frozenset({
    *_NODES, "__name__", "cluster", "gpu", "UUID", "modelName", "pci_bus_id", "err_code", "err_msg",
    "DCGM_FI_DRIVER_VERSION", "pod", "namespace", "container", "exported_pod",
    "exported_namespace", "exported_container", "endpoint", "service", "prometheus",
    "prometheus_replica", "replica",
})  # fmt: skip
"""Labels that say whose a series is or by which way it came, or change while it goes on."""


class Series(NamedTuple):
    """What samples belong to."""

    cluster: str
    node: str
    gpu: str | None
    """Its index, else its UUID."""
    metric: str
    labels: str | None
    """What else tells series of a metric apart, a JSON object; NULL for nothing."""
    uuid: str | None
    namespace: str | None
    """Of the pod that held the GPU, where the exporter says so."""
    pod: str | None


def series_of(metric: str, labels: Mapping[str, str], options: Options) -> Series:
    """Whose samples these are.

    Raises
    ------
    RecordError
        Where no label names the node and `--node` does not either.
    """
    node = _node(labels) or options.node
    if node is None:
        raise RecordError(NO_NODE)
    rest = {name: text for name, text in labels.items() if text and name not in _CHANGING}
    if metric.startswith(("DCGM_", "node_")):
        rest.pop("job", None)
    if metric.startswith("DCGM_"):
        rest.pop("device", None)
    pod = labels.get("exported_pod") or labels.get("pod")
    namespace = labels.get("exported_namespace") or labels.get("namespace")
    if "exported_pod" not in labels and "exporter" in f"{pod} {labels.get('container')}":
        pod = namespace = None
    return Series(
        options.cluster or labels.get("cluster", "").strip() or options.default_cluster,
        node,
        labels.get("gpu") or labels.get("UUID") or None,
        metric,
        json.dumps(rest, sort_keys=True, ensure_ascii=False) if rest else None,
        labels.get("UUID") or None,
        namespace or None,
        pod or None,
    )


def _node(labels: Mapping[str, str]) -> str | None:
    """The host that labels name; a pod of an exporter and this very host are none."""
    for name in _NODES:
        host = labels.get(name, "").strip()
        if name.endswith("instance"):
            host = _PORT.sub("", host)
        host = host.strip("[]")
        if host.lower() not in _NOWHERE and "exporter-" not in host:
            return host
    return None
