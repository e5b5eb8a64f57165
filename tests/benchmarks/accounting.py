"""Accounting records of a cluster that never was, in any number."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb


def write_sacct(path: Path, n_rows: int, *, first: int = 0) -> Path:
    """Writes what sacct -P says of so many attempts, one every 7.1 s, from a number on."""
    connection = duckdb.connect(config={"memory_limit": "6GB"})
    connection.execute(
        f"""COPY (SELECT
              (1000000 + i)::VARCHAR AS JobID, 'rsc' AS Cluster,
              ['learn', 'dev', 'eval'][1 + h % 3] AS Partition, 'acct' || (h % 40) AS Account,
              'user' || (h % 500) AS "User", 'normal' AS QOS,
              CASE WHEN s < 60 THEN 'COMPLETED' WHEN s < 84 THEN 'FAILED' WHEN s < 94
                THEN 'PREEMPTED' WHEN s < 96 THEN 'REQUEUED' WHEN s < 97 THEN 'TIMEOUT'
                WHEN s = 97 AND h % 20 = 0 THEN 'NODE_FAIL'
                ELSE 'CANCELLED by ' || (100000 + h % 500) END AS State,
              '0:0' AS ExitCode, 'None' AS Reason, '' AS FailedNode, '0' AS Restarts,
              strftime(began, '%Y-%m-%dT%H:%M:%S') AS Submit,
              strftime(began, '%Y-%m-%dT%H:%M:%S') AS Eligible,
              strftime(began + to_seconds(60 + h % 3600), '%Y-%m-%dT%H:%M:%S') AS Start,
              strftime(began + to_seconds(60 + h % 3600 + ran), '%Y-%m-%dT%H:%M:%S') AS "End",
              ran AS ElapsedRaw, '1-00:00:00' AS Timelimit, n AS NNodes, n * 96 AS NCPUS,
              'billing=96,cpu=' || (n * 96) || ',gres/gpu=' || (CASE WHEN n > 1 THEN n * 8
                ELSE 1 + h % 8 END) || ',mem=500G,node=' || n AS AllocTRES,
              CASE WHEN n = 1 THEN 'node' || lpad((h % 2000)::VARCHAR, 4, '0')
                ELSE 'node[' || lpad((h % 1900)::VARCHAR, 4, '0') || '-'
                  || lpad((h % 1900 + n - 2)::VARCHAR, 4, '0') || ','
                  || lpad((h % 1900 + n + 2)::VARCHAR, 4, '0') || ']' END AS NodeList,
              'train_' || (h % 10000) AS JobName,
              'sbatch --nodes=' || n || ' run.sh --lr 0.' || (h % 1000) AS SubmitLine
            FROM (SELECT i, (hash(i) % 1000003)::INT AS h, (hash(i + 7) % 100)::INT AS s,
                (hash(i + 3) % 7200 + 30)::INT AS ran,
                CASE WHEN hash(i + 5) % 100 < 92 THEN 1 ELSE (2 + hash(i + 11) % 30)::INT END AS n,
                TIMESTAMP '2024-01-01' + to_seconds((i * 7.1)::BIGINT) AS began
              FROM range({first}, {first + n_rows}) t(i)) ORDER BY i
        ) TO '{path}' (FORMAT csv, HEADER true, DELIMITER '|', QUOTE '')"""
    )
    connection.close()
    return path


if __name__ == "__main__":
    _, name, many, begin = sys.argv
    write_sacct(Path(name), int(many), first=int(begin))
