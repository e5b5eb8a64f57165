-- # Failures per 1,000 node-days by rack
-- A failure counts for the node that its verdict names; exposure is the time of jobs on the rack.
WITH racks AS (
  SELECT cluster, node, coalesce(arg_max(rack, last_seen_at), 'unknown') AS rack
  FROM nodes GROUP BY cluster, node
), exposure AS (
  SELECT cluster, rack, sum(n_gpus / gpus_per_node * greatest(0, epoch(
    least(coalesce(end_at, as_of_at), $to_at) - greatest(start_at, $from_at)))) / 86400 AS node_days
  FROM job_nodes JOIN racks USING (cluster, node) JOIN clusters USING (cluster)
  WHERE $cluster IS NULL OR cluster = $cluster
  GROUP BY cluster, rack
), failed AS (
  SELECT cluster, rack, count(*) AS failures
  FROM failures JOIN racks USING (cluster, node)
  WHERE (domain = 'hardware' OR node_lost) AND failed_at >= $from_at AND failed_at < $to_at
    AND ($cluster IS NULL OR cluster = $cluster)
  GROUP BY cluster, rack
)
SELECT cluster, rack, coalesce(failures, 0) AS failures, round(node_days) AS node_days,
  round(1000 * coalesce(failures, 0) / node_days, 2) AS failures_per_1000_node_days
FROM exposure LEFT JOIN failed USING (cluster, rack)
WHERE node_days > 0
ORDER BY failures_per_1000_node_days DESC;

-- # What fails most, and what it takes with it
-- GPU-hours are the whole running time of the failed attempts: the upper bound of the loss.
SELECT f.cause, f.domain, count(*) AS attempts, round(avg(f.confidence), 2) AS mean_confidence,
  round(sum(j.n_gpus * epoch(j.end_at - j.start_at)) / 3600) AS gpu_hours
FROM failures AS f JOIN jobs AS j USING (cluster, attempt_key)
WHERE f.failed_at >= $from_at AND f.failed_at < $to_at
  AND ($cluster IS NULL OR f.cluster = $cluster)
  AND ($partition IS NULL OR j.partition = $partition)
  AND ($account IS NULL OR j.account = $account)
  AND ($min_gpus = 0 OR j.n_gpus >= $min_gpus)
GROUP BY ALL
ORDER BY attempts DESC;

-- # Hardware failures by day and cause
SELECT time_bucket(INTERVAL 1 DAY, failed_at) AS day_at, cause, count(*) AS failures
FROM failures
WHERE domain = 'hardware' AND failed_at >= $from_at AND failed_at < $to_at
  AND ($cluster IS NULL OR cluster = $cluster)
GROUP BY ALL
ORDER BY day_at, cause;

-- # Nodes named most often by hardware verdicts
-- Candidates to test or replace. One node that kills several jobs in an hour counts each of them.
SELECT cluster, node, count(*) AS failures, count(DISTINCT cause) AS different_causes,
  mode(cause) AS most_frequent_cause, min(failed_at) AS first_at, max(failed_at) AS last_at
FROM failures
WHERE domain = 'hardware' AND node IS NOT NULL
  AND failed_at >= $from_at AND failed_at < $to_at AND ($cluster IS NULL OR cluster = $cluster)
GROUP BY cluster, node
QUALIFY rank() OVER (ORDER BY count(*) DESC) <= 20
ORDER BY count(*) DESC, node;

-- # Which XIDs come before failures
-- Of the events of each code, how many had a job on their node that failed from 5 minutes before
-- to 10 minutes after (clocks differ).
WITH events AS (
  SELECT cluster, event_id, node, xid, observed_at FROM health_events
  WHERE xid IS NOT NULL AND observed_at >= $from_at AND observed_at < $to_at
    AND ($cluster IS NULL OR cluster = $cluster)
), hit AS (
  SELECT DISTINCT cluster, event_id
  FROM events
  JOIN job_nodes USING (cluster, node)
  JOIN failures USING (cluster, attempt_key)
  WHERE failed_at BETWEEN observed_at - INTERVAL 5 MINUTE AND observed_at + INTERVAL 10 MINUTE
)
SELECT xid, count(*) AS events, count(hit.event_id) AS followed_by_failure,
  round(count(hit.event_id) / count(*), 3) AS share
FROM events LEFT JOIN hit USING (cluster, event_id)
GROUP BY xid
ORDER BY events DESC;

-- # Share of attempts that fail, by job size
SELECT CASE WHEN n_gpus = 1 THEN '1' WHEN n_gpus <= 8 THEN '2-8' WHEN n_gpus <= 64 THEN '9-64'
    WHEN n_gpus <= 512 THEN '65-512' ELSE '513 and more' END AS gpus,
  count(*) AS ended, count(f.attempt_key) AS failed,
  count(f.attempt_key) FILTER (f.domain = 'hardware') AS failed_by_hardware,
  round(count(f.attempt_key) / count(*), 4) AS failed_share
FROM jobs AS j LEFT JOIN failures AS f USING (cluster, attempt_key)
WHERE j.end_at >= $from_at AND j.end_at < $to_at AND j.n_gpus > 0
  AND ($cluster IS NULL OR j.cluster = $cluster)
  AND ($partition IS NULL OR j.partition = $partition)
  AND ($account IS NULL OR j.account = $account)
GROUP BY ALL
ORDER BY min(j.n_gpus);

-- # GPU-hours of failed attempts, by account and domain
SELECT coalesce(j.account, 'unknown') AS account, f.domain,
  round(sum(j.n_gpus * epoch(j.end_at - j.start_at)) / 3600) AS gpu_hours,
  count(*) AS attempts
FROM failures AS f JOIN jobs AS j USING (cluster, attempt_key)
WHERE f.failed_at >= $from_at AND f.failed_at < $to_at
  AND ($cluster IS NULL OR f.cluster = $cluster)
  AND ($account IS NULL OR j.account = $account)
GROUP BY ALL
ORDER BY gpu_hours DESC
LIMIT 40;

-- # How long jobs wait, by week and partition
SELECT time_bucket(INTERVAL 7 DAY, start_at) AS week_at, partition, count(*) AS started,
  round(median(epoch(start_at - coalesce(eligible_at, submit_at))) / 60, 1) AS median_wait_minutes,
  round(quantile_cont(epoch(start_at - coalesce(eligible_at, submit_at)), 0.95) / 60, 1)
    AS p95_wait_minutes
FROM jobs
WHERE start_at >= $from_at AND start_at < $to_at AND ($cluster IS NULL OR cluster = $cluster)
  AND ($partition IS NULL OR partition = $partition)
GROUP BY ALL
ORDER BY week_at, partition;

-- # Which checks the verdicts rest on
-- The evidence of a verdict is a JSON array; each item names its kind and, of an event, its check.
WITH items AS (
  SELECT f.cluster, f.attempt_key, f.cause, unnest(from_json(f.evidence, '["JSON"]')) AS item
  FROM failures AS f
  WHERE f.failed_at >= $from_at AND f.failed_at < $to_at
    AND ($cluster IS NULL OR f.cluster = $cluster)
)
SELECT item->>'kind' AS kind, item->>'check' AS "check", item->>'xid' AS xid, cause,
  count(DISTINCT (cluster, attempt_key)) AS attempts
FROM items
GROUP BY ALL
ORDER BY attempts DESC
LIMIT 50;

-- # From one failure of a node to its next
-- Hours between failures that name the same node: short gaps point at repairs that did not hold.
SELECT cluster, node, failed_at, cause,
  lag(cause) OVER history AS cause_before,
  round(epoch(failed_at - lag(failed_at) OVER history) / 3600, 1) AS gap_hours
FROM failures
WHERE domain = 'hardware' AND node IS NOT NULL
  AND failed_at >= $from_at AND failed_at < $to_at AND ($cluster IS NULL OR cluster = $cluster)
WINDOW history AS (PARTITION BY cluster, node ORDER BY failed_at)
QUALIFY gap_hours IS NOT NULL
ORDER BY gap_hours;

-- # The incidents that cost most
SELECT incident_id, start_at, cause, domain, n_jobs, n_preempted_jobs, n_gpus,
  round(lost_gpu_seconds / 3600) AS lost_gpu_hours, summary
FROM incidents
WHERE superseded_by IS NULL AND NOT coalesce(retired, false)
  AND start_at >= $from_at AND start_at < $to_at AND ($cluster IS NULL OR cluster = $cluster)
ORDER BY lost_gpu_hours DESC
LIMIT 25;

-- # Jobs that failed again and again
-- Attempts of one job that failed, and what they had in common.
SELECT j.cluster, j.job_id, j."user", count(*) AS failed_attempts, mode(f.cause) AS cause,
  count(DISTINCT f.node) AS nodes_named, round(sum(j.n_gpus * epoch(j.end_at - j.start_at)) / 3600)
    AS gpu_hours
FROM failures AS f JOIN jobs AS j USING (cluster, attempt_key)
WHERE f.failed_at >= $from_at AND f.failed_at < $to_at
  AND ($cluster IS NULL OR f.cluster = $cluster)
  AND ($min_gpus = 0 OR j.n_gpus >= $min_gpus)
GROUP BY ALL
HAVING count(*) > 1
ORDER BY failed_attempts DESC, gpu_hours DESC
LIMIT 50;

-- # What was not collected
-- Days between the first and last record of a source on which it has none.
WITH spans AS (
  SELECT cluster, source, min(day) AS first_day, max(day) AS last_day, count(*) AS days_with_rows
  FROM coverage WHERE day IS NOT NULL AND ($cluster IS NULL OR cluster = $cluster)
  GROUP BY ALL
)
SELECT *, date_diff('day', first_day, last_day) + 1 - days_with_rows AS days_without_rows
FROM spans
ORDER BY days_without_rows DESC;
