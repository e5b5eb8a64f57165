"""Incidents, and what each consists of."""

from data.tables.table import Table, bigint, boolean, integer, timestamptz, varchar

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
