"""How often checks fire around the end of attempts."""

from data.tables.table import Table, bigint, boolean, double, varchar

CHECK_CALIBRATION = Table(
    "check_calibration",
    "How often a check fires around the end of attempts, successful and failed, and on nodes whose "
    "attempts ran on, in the days that its source was read. Derived at every publish.",
    {
        "cluster": varchar("name of the cluster"),
        "signal": varchar("name of the check, xid <code>, sxid <code>, or node <state>"),
        "severity": varchar("severity of its events; NULL unknown"),
        "speaks": boolean("whether such events speak for causes: outages, critical and fatal ones"),
        "n_completed_attempts": bigint("attempts that completed"),
        "n_completed_attempts_hit": bigint("of these, attempts with such an event near their end"),
        "n_completed": bigint("nodes of attempts that completed"),
        "n_completed_hits": bigint("of these, nodes with such an event near the end"),
        "n_failed": bigint("nodes of attempts that ended FAILED or NODE_FAIL"),
        "n_failed_hits": bigint("of these, nodes with such an event near the end"),
        "n_failed_node_days": bigint("days of nodes with such an event near such an end"),
        "background_node_days": double("node-days that attempts held while its source was read"),
        "n_background_hits": bigint(
            "windows of time in which it fired on a node whose attempts ran on or completed; 0 "
            "where it does not speak for causes"
        ),
        "rate_per_node_day": double(
            "rate of firing by chance, drawn towards 0 where little is known"
        ),
        "window_minutes": double("length of the window of attribution around an end"),
        "causal_ratio": double(
            "share of the hits around failures that is not chance, in [0, 1]; NULL where no "
            "failure was hit"
        ),
    },
    key=("cluster", "signal", "severity"),
)
