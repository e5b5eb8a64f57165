"""Causes that the demo planted."""

from data.tables.table import Table, boolean, varchar

PLANTED_CAUSES = Table(
    "planted_causes",
    "Why attempts of a synthetic cluster failed, as `faultline demo` planted it. Empty in real "
    "stores.",
    {
        "cluster": varchar("name of the cluster"),
        "attempt_key": varchar("the attempt"),
        "cause": varchar("planted cause"),
        "domain": varchar("its domain"),
        "has_event": boolean("a health event near the end shows the cause"),
    },
    key=("cluster", "attempt_key"),
)
