"""How often checks fire around the end of attempts."""

from data.tables.table import Table, bigint, double, varchar

CHECK_CALIBRATION = Table(
    "check_calibration",
    "How often a check fires around the end of attempts, successful and failed. Derived at every "
    "publish.",
    {
        "cluster": varchar("name of the cluster"),
        "signal": varchar("name of the check, xid <code>, sxid <code>, or node <state>"),
        "severity": varchar("severity of its events; NULL unknown"),
        "n_completed_attempts": bigint("attempts that completed"),
        "n_completed_attempts_hit": bigint("of these, attempts with such an event near their end"),
        "n_completed": bigint("nodes of attempts that completed"),
        "n_completed_hits": bigint("of these, nodes with such an event near the end"),
        "n_failed": bigint("nodes of attempts that ended FAILED or NODE_FAIL"),
        "n_failed_hits": bigint("of these, nodes with such an event near the end"),
        "causal_ratio": double(
            "share of the hits around failures that is not chance, in [0, 1]; NULL where no "
            "failure was hit"
        ),
    },
    key=("cluster", "signal", "severity"),
)
