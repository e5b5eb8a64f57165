"""Attempts that failed, each with its verdict."""

from data.tables.table import Table, boolean, double, timestamptz, varchar

FAILURES = Table(
    "failures",
    "An attempt ended by a failure, with its verdict. Derived at every publish.",
    {
        "cluster": varchar("name of the cluster"),
        "attempt_key": varchar("the attempt"),
        "failed_at": timestamptz("end of the attempt"),
        "state": varchar("state of the attempt"),
        "node_lost": boolean(
            "the scheduler lost a node of it: state NODE_FAIL, or a filled FailedNode"
        ),
        "ended_by_user": boolean("its user cancelled it: state CANCELLED, not by root"),
        "critical_check": boolean(
            "a critical or fatal health event on its nodes in the window of attribution, whatever "
            "the verdict; NULL where no health event is known"
        ),
        "symptom": varchar("what was seen"),
        "domain": varchar("user, system_software, hardware or unknown"),
        "cause": varchar("cause, by the taxonomy; unknown where nothing names one"),
        "confidence": double(
            "share of the evidence that speaks for the cause, in [0, 1]; 0 where unknown"
        ),
        "method": varchar("scheduler, health_event, log_rule, log_model, human or none"),
        "node": varchar("node that failed; NULL where no record names it"),
        "evidence": varchar(
            "what the verdict rests on, a JSON array: kind, key, node, offset_s (seconds from the "
            "end), check, severity, xid, cause, role, why, n, odds, text",
            people="nested",
        ),
        "alternatives": varchar(
            "other causes considered, a JSON array: cause, confidence, reason", people="nested"
        ),
        "derived_cause": varchar(
            "cause that the evidence names where a person decided; NULL where cause itself is that"
        ),
        "derived_domain": varchar("its domain; NULL as there"),
        "derived_confidence": double("its confidence; NULL as there"),
        "derived_method": varchar("what names it; NULL as there"),
    },
    key=("cluster", "attempt_key"),
)
