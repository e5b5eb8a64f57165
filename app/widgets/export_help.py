"""How to export each source, and the command that reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from app.show import command_lines

if TYPE_CHECKING:
    from datetime import date

SACCT_COLUMNS = """\\
JobID,JobIDRaw,Cluster,User,Account,Partition,QOS,\\
JobName,State,ExitCode,Reason,FailedNode,Restarts,\\
Submit,Eligible,Start,End,ElapsedRaw,TimelimitRaw,\\
NNodes,NCPUS,AllocTRES,ReqTRES,NodeList,Flags,SubmitLine"""
"""Broken where a shell joins lines again."""


@dataclass(frozen=True)
class Export:
    """A source: what it adds, how to get it, how to ingest it."""

    title: str
    adds: str
    export: str
    """With {start} and {end} for the period."""
    ingest: str


EXPORTS = {
    "sacct": Export(
        "Jobs (sacct)",
        "Jobs, nodes and exposure: alone enough for failure rate and MTTF. Without `--duplicates` "
        "only the last attempt of a requeued job appears and failures are undercounted. Slurm "
        "25.11 and later: add SLUID to the columns.",
        "sacct -a -P --duplicates -S {start} -E {end} \\\n  --format=" + SACCT_COLUMNS + " \\\n"
        "  > sacct.txt",
        "faultline ingest sacct sacct.txt --cluster {cluster} --timezone {timezone}",
    ),
    "sacct-json": Export(
        "Jobs (Slurm's JSON)",
        "The same as `sacct` prints as text, also excluded nodes and submit lines. A job is about "
        "7 kB there and 0.3 kB as text. Jobs of slurmrestd and `squeue --json` are read too: those "
        "that the controller still knows.",
        "sacct -a --duplicates -S {start} -E {end} --json > sacct.json",
        "faultline ingest sacct-json sacct.json --cluster {cluster}",
    ),
    "jobcomp": Export(
        "Jobs (jobcomp in Elasticsearch)",
        "Every attempt as it ended, also those that were requeued, where accounting is kept in "
        "Elasticsearch or Kafka (JobCompType=jobcomp/elasticsearch). Times are UTC.",
        "elasticdump --input=http://localhost:9200/slurm --output=jobs.json --type=data",
        "faultline ingest jobcomp jobs.json --cluster {cluster}",
    ),
    "pbs": Export(
        "Jobs (PBS, TORQUE)",
        "Jobs that ended or were requeued, with hosts, GPUs and exit status. Why PBS ended a job "
        "is not in its accounting: what was SIGTERM stopped before its limit counts as cancelled.",
        "# a file a day, on the server:\ncat $PBS_HOME/server_priv/accounting/2* > pbs.txt",
        "faultline ingest pbs pbs.txt --cluster {cluster}",
    ),
    "lsf": Export(
        "Jobs (LSF)",
        "Jobs that ended, with hosts, exit status and why LSF ended them. Its accounting names no "
        "GPUs.",
        "# on the master host, with the older files beside it:\n"
        "cat $LSB_SHAREDIR/*/logdir/lsb.acct* > lsf.txt",
        "faultline ingest lsf lsf.txt --cluster {cluster}",
    ),
    "sge": Export(
        "Jobs (Grid Engine)",
        "Jobs that ended. Accounting names one host only, so that hosts of parallel jobs of "
        "several slots stay unknown, and no GPUs.",
        "cp $SGE_ROOT/$SGE_CELL/common/accounting accounting.txt",
        "faultline ingest sge accounting.txt --cluster {cluster}",
    ),
    "job-table": Export(
        "Jobs (any table)",
        "Jobs of any scheduler as CSV or Parquet: `job_id`, `state`, `submit_at`, `start_at`, "
        "`end_at`, `n_nodes`, `n_gpus` and what else is known; other names by a `--mapping`. The "
        "public traces Acme, Helios and Alibaba PAI by `--preset acme`, `helios`, `alibaba-pai`.",
        "# e.g. data/job_trace/trace_seren.csv of AcmeTrace",
        "faultline ingest job-table trace_seren.csv --preset acme --cluster {cluster}",
    ),
    "philly": Export(
        "Jobs (Microsoft's Philly trace)",
        "Jobs with every attempt, its nodes and GPUs.",
        "# cluster_job_log of msr-fiddle/philly-traces",
        "faultline ingest philly cluster_job_log",
    ),
    "sacctmgr-events": Export(
        "Nodes out of service (sacctmgr)",
        "Which nodes were down or drained, since when and why.",
        "sacctmgr -P show event start={start} end={end} \\\n"
        "  format=Cluster,NodeName,TimeStart,TimeEnd,State,Reason,User \\\n  > events.txt",
        "faultline ingest sacctmgr-events events.txt --cluster {cluster} --timezone {timezone}",
    ),
    "scontrol-nodes": Export(
        "Nodes and their GPUs (scontrol)",
        "How many GPUs each node has, its state and features, from now on: without it a node has "
        "the GPUs that jobs on it show, and idle nodes are unknown. Export it again when nodes "
        "change. `sinfo` and lists of your own (`node-inventory`) are read too.",
        "scontrol show node > nodes.txt",
        "faultline ingest scontrol-nodes nodes.txt --cluster {cluster} --timezone {timezone}",
    ),
    "sinfo": Export(
        "Nodes and their GPUs (sinfo)",
        "The same as `scontrol show node` says, where only `sinfo` may be called: a node stands "
        "once for each of its partitions and counts once.",
        "sinfo --json > sinfo.json",
        "faultline ingest sinfo sinfo.json --cluster {cluster}",
    ),
    "node-inventory": Export(
        "Nodes and their GPUs (a list of your own)",
        "What each node has, from an asset database: CSV or Parquet with node, gpus and, where "
        "they are known, gpu_model, rack and observed_at. Other names take a `--mapping`.",
        "cat nodes.csv  # node,gpus,gpu_model,rack,observed_at",
        "faultline ingest node-inventory nodes.csv --cluster {cluster} --at {start}",
    ),
    "tickets": Export(
        "Repair tickets (a list of your own)",
        "What was repaired on which node, when, by whom: CSV or Parquet with opened_at and, where "
        "they are known, ticket_id, node, closed_at, component, action, vendor, serial and text. "
        "Other names take a `--mapping`.",
        "cat tickets.csv  # ticket_id,node,opened_at,closed_at,component,action,vendor,serial,text",
        "faultline ingest tickets tickets.csv --cluster {cluster} --timezone {timezone}",
    ),
    "node-facts": Export(
        "Serials, drivers, firmware of nodes (a list of your own)",
        "What holds of a node or GPU and since when: CSV or Parquet with node, gpu, from_at, to_at "
        "and a column a fact (driver, firmware, serial, batch, gpu_model, ...), or key and value.",
        "cat facts.csv  # node,gpu,from_at,to_at,driver,firmware,serial,batch",
        "faultline ingest node-facts facts.csv --cluster {cluster} --timezone {timezone}",
    ),
    "kernel-log": Export(
        "Kernel log",
        "GPU and switch errors, memory kills, machine checks, links: evidence of why a job "
        "on these nodes failed. "
        "Journal output carries the host and the zone; `dmesg -T` carries no host, so give it.",
        "journalctl _TRANSPORT=kernel -o short-iso-precise --since {start} --until {end} \\\n"
        "  > kernel-$(hostname).log\n"
        "# or, on one node:\ndmesg -T > dmesg-$(hostname).log",
        "faultline ingest kernel-log kernel-*.log --cluster {cluster} --timezone {timezone}\n"
        "faultline ingest kernel-log dmesg-node001.log --node node001 --cluster {cluster} "
        "--timezone {timezone}",
    ),
    "gcm-health": Export(
        "Health checks (gcm)",
        "Health checks that did not pass, by node and time (facebookresearch/gcm, HealthCheckLog).",
        "# gcm's file sink writes JSON lines, e.g.\n"
        "health_checks check-dcgmi diag ... --sink file --sink-opts filepath=/var/log/gcm.jsonl",
        "faultline ingest gcm-health /var/log/gcm.jsonl --cluster {cluster}",
    ),
    "ras-log": Export(
        "RAS log (Blue Gene/L)",
        "Alerts of a machine's own RAS log, with the labels that people gave them.",
        "# BGL.log as LogHub and the USENIX Computer Failure Data Repository publish it",
        "faultline ingest ras-log BGL.log --cluster {cluster}",
    ),
    "ipmi-sel": Export(
        "Events of service processors (ipmitool)",
        "Memory, processor, power, temperature and fans as the BMC saw them.",
        "ipmitool sel elist > sel-$(hostname).txt",
        "faultline ingest ipmi-sel sel-node001.txt --node node001 --cluster {cluster} "
        "--timezone {timezone}",
    ),
    "redfish": Export(
        "Events of service processors (Redfish)",
        "Memory, processor, power, temperature and fans as the BMC saw them, with its severity.",
        "curl -s -n https://node001-bmc/redfish/v1/Systems/1/LogServices/SEL/Entries \\\n"
        "  > redfish-node001.json",
        "faultline ingest redfish redfish-node001.json --node node001 --cluster {cluster}",
    ),
    "nvsentinel": Export(
        "Health events (NVSentinel)",
        "What NVSentinel's monitors found, by node and GPU.",
        "mongoexport -d HealthEventsDatabase -c HealthEvents -o nvsentinel.json",
        "faultline ingest nvsentinel nvsentinel.json --cluster {cluster}",
    ),
    "gpud": Export(
        "Health events (gpud)",
        "What gpud's components found on a node: XIDs, links, memory, disks. `/v1/states` (what is "
        "not well now) and `/v1/info` are read, too.",
        "curl -ks 'https://NODE:15132/v1/events?startTime={start}T00:00:00Z' > gpud-NODE.json",
        "faultline ingest gpud gpud-NODE.json --node NODE --cluster {cluster}",
    ),
    "job-log": Export(
        "Logs of jobs",
        "The first cause of a failure as the job itself tells it. Files are named by job id "
        "(`%j`, also `%A_%a`, `%x`, `%N`, `%t`); the first and last lines of each are kept.",
        "# the folder that --output of sbatch names, e.g. slurm-%j.out",
        "faultline ingest job-log /logs --pattern 'slurm-%j.out' --cluster {cluster} "
        "--timezone {timezone}",
    ),
    "k8s-pods": Export(
        "Jobs (Kubernetes)",
        "Jobs from their pods: of batch Jobs, Kubeflow, JobSet, Volcano, Kueue, Ray. Pods that are "
        "gone are in no export: export every hour, or `--output-watch-events`.",
        "kubectl get pods -A -o json > pods.json",
        "faultline ingest k8s-pods pods.json --cluster {cluster}",
    ),
    "k8s-workloads": Export(
        "Queues (Kueue, Volcano)",
        "When jobs waited, were admitted, evicted and why. Attempts and nodes are those of the "
        "pods where those are read; a job without pods has its attempts from here. Likewise "
        "jobs.batch.volcano.sh and podgroups.scheduling.volcano.sh.",
        "kubectl get workloads.kueue.x-k8s.io -A -o json > workloads.json",
        "faultline ingest k8s-workloads workloads.json --cluster {cluster}",
    ),
    "k8s-nodes": Export(
        "Nodes (Kubernetes)",
        "GPUs and labels, since when a node was not ready or cordoned, and what "
        "node-problem-detector found.",
        "kubectl get nodes -o json > nodes.json",
        "faultline ingest k8s-nodes nodes.json --cluster {cluster}",
    ),
    "k8s-events": Export(
        "Events of nodes (Kubernetes)",
        "When nodes went and came back, and what watchers found. Kubernetes keeps events for an "
        "hour unless told otherwise.",
        "kubectl get events -A -o json > events.json",
        "faultline ingest k8s-events events.json --cluster {cluster}",
    ),
    "loki": Export(
        "Logs kept in Loki",
        "Lines of the kernel, and of jobs where a label (`slurm_job_id`, `job_id`) or the name of "
        "the file (`slurm-4711.out`, else by `--pattern`) says the job. A label says the host.",
        "logcli query --from={start}T00:00:00Z --to={end}T00:00:00Z --limit=0 --forward \\\n"
        "  -o jsonl '{{transport=\"kernel\"}}' > loki.jsonl",
        "faultline ingest loki loki.jsonl --cluster {cluster}",
    ),
    "elasticsearch": Export(
        "Logs kept in Elasticsearch, OpenSearch",
        "The same from documents with `message` and `@timestamp`, as Filebeat, Journalbeat and "
        "Fluent Bit write them; `host.name` or the like says the host.",
        "elasticdump --input=http://localhost:9200/journal --output=logs.json --type=data",
        "faultline ingest elasticsearch logs.json --cluster {cluster}",
    ),
    "dcgm": Export(
        "Metrics of a node (DCGM exporter, node_exporter)",
        "Temperature, power, utilisation, errors of GPUs and links by the hour; XIDs where the "
        "exporter's XID gauge changes. One scrape holds the values of one moment: "
        "`faultline collect` asks for them again and again.",
        "curl -s http://NODE:9400/metrics > metrics.prom",
        "faultline ingest dcgm metrics.prom --node NODE --cluster {cluster}",
    ),
    "infiniband": Export(
        "Counters of InfiniBand ports",
        "Errors, recoveries and data of each port by the hour: from sysfs, or what `perfquery -x` "
        "or `ibqueryerrors` prints.",
        "grep . /sys/class/infiniband/*/ports/*/counters/* > infiniband-NODE.txt",
        "faultline ingest infiniband infiniband-NODE.txt --node NODE --cluster {cluster}",
    ),
    "prometheus-json": Export(
        "Metrics kept in Prometheus",
        "The same of all nodes for a period. Ask for metrics by their bare names, not for "
        "functions of them; a collector's source of kind `prometheus` does so by itself.",
        "curl -sG http://localhost:9090/api/v1/query_range \\\n"
        "  -d query=DCGM_FI_DEV_XID_ERRORS -d step=60 \\\n"
        "  -d start={start}T00:00:00Z -d end={end}T00:00:00Z > xids.json",
        "faultline ingest prometheus-json xids.json --cluster {cluster}",
    ),
    "training-metrics": Export(
        "Training metrics (CSV)",
        "What steps, checkpoints and restarts of a run took: start-up, checkpoint time and lost "
        "work are then measured, not assumed. Needs a step and a time; loss, step_time_s, "
        "grad_norm, throughput, rank, checkpoint_event (saved, loaded), checkpoint_s and further "
        "numbers are taken where they stand. Usual other names are known.",
        "# the CSV of your logger, e.g. with the columns\n"
        "step,logged_at,loss,step_time_s,checkpoint_event,checkpoint_s",
        "faultline ingest training-metrics metrics.csv --job-id 4711 --cluster {cluster} "
        "--timezone {timezone}",
    ),
    "straggler-trace": Export(
        "Straggler trace (Parquet or CSV)",
        "How much faster a job would train without its stragglers, and which worker, stage or "
        "operation is slow: from the operations of some training steps on every worker. Needs "
        "step, dp_rank, stage, optype, seq_id, mc, start_ts and duration (seconds); rank, mb_id "
        "and gmc are taken where they stand. The meta file states the sizes of the job.",
        "# one row an operation of one worker in one step, as NDTimeline traces hold them:\n"
        "dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc",
        "faultline ingest straggler-trace trace.parquet --meta meta.yaml --job-id 4711 "
        "--cluster {cluster}",
    ),
    "failure-log": Export(
        "Failure log (CSV or Parquet)",
        "Failures of nodes known without jobs, e.g. from a ticket system; a mapping in TOML names "
        "the columns. `lanl` and `pnnl` are built in.",
        "# any CSV with a node and a start time",
        "faultline ingest failure-log failures.csv --mapping mapping.toml --cluster {cluster} "
        "--timezone {timezone}",
    ),
}
"""By name of the source on the command line."""


def show(*, start: date, end: date, cluster: str, timezone: str) -> None:
    """The commands of one source, for a period."""
    chosen = st.selectbox(
        "Source",
        list(EXPORTS),
        format_func=lambda source: EXPORTS[source].title,
        key="export_source",
    )
    export = EXPORTS[chosen]
    values = {"start": start, "end": end, "cluster": cluster, "timezone": timezone}
    st.markdown(export.adds)
    st.caption("Export")
    st.code(export.export.format(**values), language=None, wrap_lines=True)
    st.caption("Ingest")
    command_lines.show(export.ingest.format(**values).split("\n"))
