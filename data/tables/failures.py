"""Attempts that failed with their verdicts, incidents, and how far checks can be trusted."""

from __future__ import annotations

from data.tables.table import (
    Table,
    bigint,
    boolean,
    date,
    double,
    integer,
    timestamptz,
    unlike,
    varchar,
)

FAILURES = Table(
    "failures",
    "An attempt ended by a failure, with its verdict. Derived at every publish.",
    {
        "cluster": varchar("name of the cluster"),
        "attempt_key": unlike("the attempt"),
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
        "job": unlike("job_id of the attempt in jobs", people="id"),
        "job_user": varchar("its user", people="user"),
        "job_account": varchar("its account", people="account"),
        "job_partition": varchar("its partition"),
        "job_gpus": integer("its GPUs; NULL where unknown"),
        "job_nodes": integer("its nodes"),
        "job_start_at": timestamptz("its start; NULL where it never ran"),
    },
    key=("cluster", "attempt_key"),
)

VERDICT_DAYS = Table(
    "verdict_days",
    "Verdicts alike on a day: what pages would add up from the rows of `failures`. Kept of many "
    "attempts alone.",
    {
        "cluster": varchar("name of the cluster"),
        "day": date("day of the end where the cluster stands"),
        "partition": varchar("partition of the attempts"),
        "n_gpus": integer("GPUs of each attempt; NULL where unknown"),
        "n_nodes": integer("nodes of each attempt"),
        "state": varchar("state of the attempts"),
        "node_lost": boolean("as in failures"),
        "ended_by_user": boolean("as in failures"),
        "critical_check": boolean("as in failures"),
        "domain": varchar("as in failures"),
        "cause": varchar("as in failures"),
        "method": varchar("as in failures"),
        "n_attempts": bigint("attempts"),
        "n_started": bigint("of them, those that ran"),
        "gpu_seconds": bigint(
            "running time x GPUs, of each in whole seconds; NULL where GPUs are unknown, or "
            "none ran"
        ),
    },
    key=("cluster", "day", "partition", "n_gpus", "n_nodes", "state", "node_lost", "ended_by_user",
         "critical_check", "domain", "cause", "method"),
)  # fmt: skip

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

INCIDENTS = Table(
    "incidents",
    "Failures, events and outages that belong together. Derived at every publish.",
    {
        "incident_id": varchar(
            "hash of cluster, domain and earliest member; stays when derived again"
        ),
        "cluster": varchar("name of the cluster"),
        "start_at": timestamptz("first failure, critical event or outage of it"),
        "end_at": timestamptz("last one; an outage counts with its start"),
        "cause": varchar("leading cause"),
        "domain": varchar("user, system_software, hardware or unknown"),
        "n_jobs": integer("jobs that failed, or were preempted by a requeue of one that failed"),
        "n_failed_jobs": integer("jobs that failed"),
        "n_preempted_jobs": integer("jobs preempted by a requeue"),
        "n_failures": integer("attempts that failed"),
        "n_preempted": integer("attempts preempted by a requeue"),
        "n_events": bigint("critical and fatal observations"),
        "nodes": varchar("nodes at fault or with evidence, a JSON array"),
        "n_nodes": integer("nodes of the attempts hit and of the events"),
        "nodes_named": boolean(
            "the records name them; false where they are all nodes of the attempts"
        ),
        "n_gpus": integer(
            "GPUs of the jobs hit, of each job its largest attempt; GPUs held twice count twice"
        ),
        "n_failed_gpus": integer("the same of the jobs that failed"),
        "n_preempted_gpus": integer("the same of the jobs preempted"),
        "lost_gpu_seconds": bigint("sum over attempts hit of min(running time, 30 min) x GPUs"),
        "second_order_gpu_seconds": bigint("the part of it lost by preempted attempts"),
        "n_unmeasured": integer("attempts whose loss is not known: no GPUs or no times"),
        "loop_failures": integer(
            "failures in a row of the longest crash loop; 0 where there is none"
        ),
        "loop_requeues": integer("its requeues"),
        "summary": varchar("what happened, in a sentence"),
        "superseded_by": varchar("incident this one was merged into"),
        "retired": boolean("its members are no incident any more"),
    },
    key=("incident_id",),
)

INCIDENT_MEMBERS = Table(
    "incident_members",
    "A member of an incident. Derived.",
    {
        "incident_id": varchar("the incident"),
        "kind": varchar("failure, health_event (a burst), node_event, preemption"),
        "key": varchar("attempt_key; event_id of the first of a burst; node@start of an outage"),
        "start_at": timestamptz("when, or from when"),
        "end_at": timestamptz("until when; NULL for a moment, or while it lasts"),
        "node": varchar("node; NULL where no record names it"),
        "text": varchar("what the record says", people="text"),
        "severity": varchar("severity of events"),
        "role": varchar("seed, context or consequence"),
        "signal": varchar("what was seen: a check, a code, a state, a cause"),
    },
    key=("incident_id", "kind", "key"),
)
