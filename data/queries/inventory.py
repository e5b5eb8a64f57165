"""What is known of the nodes of each cluster and their GPUs, and from where."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.definitions import OUT_OF_SERVICE
from data.filters import equal
from data.site import load_site

if TYPE_CHECKING:
    import pandas as pd

    from data.filters import Selection
    from data.store import Store


def by_cluster(store: Store, selection: Selection) -> pd.DataFrame:
    """Compute nodes of each selected cluster, by what says how many GPUs they have.

    Columns cluster; gpus_per_node (site.toml's, else NULL); basis (of the cluster's exposure);
    n_stated, n_listed, n_observed (nodes of a source's inventory, of node_inventory, of records
    alone); n_unstated (of the first two those without a number of GPUs); n_showing (of the last
    those on which an attempt held GPUs); n_listed_gpus (listed with GPUs); n_back,
    first_listed_at (listed nodes whose GPUs are taken to be older than the first inventory that
    shows them, and when that was); n_off (shown powered down last); n_went; n_unused (listed nodes
    with GPUs on which no job ran); n_shown_out (nodes that inventories alone show out of service,
    since when their reason says).
    """
    rows = store.frame(
        f"""WITH node AS (
              SELECT cluster, node,
                CASE WHEN bool_or(source = 'listed') THEN 'listed'
                  WHEN bool_or(source = 'inventory') THEN 'stated' ELSE 'observed' END AS known_by,
                max(gpus) AS gpus, bool_or(listed_at > first_seen_at) AS reaches_back,
                min(listed_at) AS listed_at,
                NOT coalesce(arg_max(powered, listed_at), true) AS is_off,
                bool_and(last_seen_at IS NOT NULL) AS went
              FROM nodes WHERE node IS NOT NULL AND coalesce(role, 'compute') = 'compute'
                AND {equal(cluster=selection.cluster)}
              GROUP BY cluster, node),
            shown_out AS (
              SELECT cluster, count(DISTINCT node) AS n_shown_out FROM node_inventory
              WHERE reason_at < observed_at AND {OUT_OF_SERVICE}
                AND cluster NOT IN (SELECT cluster FROM node_events WHERE cluster IS NOT NULL)
              GROUP BY cluster),
            used AS (
              SELECT DISTINCT cluster, node FROM job_nodes
              WHERE cluster IN (SELECT cluster FROM node_inventory))
            SELECT cluster, any_value(basis) AS basis,
              count(*) FILTER (known_by = 'stated') AS n_stated,
              count(*) FILTER (known_by = 'listed') AS n_listed,
              count(*) FILTER (known_by = 'observed') AS n_observed,
              count(*) FILTER (known_by <> 'observed' AND gpus IS NULL) AS n_unstated,
              count(*) FILTER (known_by = 'observed' AND gpus > 0) AS n_showing,
              count(*) FILTER (known_by = 'listed' AND gpus > 0) AS n_listed_gpus,
              count(*) FILTER (known_by = 'listed' AND gpus > 0 AND reaches_back) AS n_back,
              min(listed_at) FILTER (reaches_back) AS first_listed_at,
              count(*) FILTER (known_by = 'listed' AND gpus > 0 AND is_off) AS n_off,
              count(*) FILTER (known_by = 'listed' AND went) AS n_went,
              count(*) FILTER (known_by = 'listed' AND gpus > 0 AND used.node IS NULL) AS n_unused,
              coalesce(any_value(n_shown_out), 0) AS n_shown_out
            FROM node JOIN clusters USING (cluster) LEFT JOIN shown_out USING (cluster)
            LEFT JOIN used USING (cluster, node)
            GROUP BY cluster ORDER BY cluster""",
        selection.parameters,
    )
    return rows.assign(gpus_per_node=_stated(store, rows["cluster"]))


def contradicted(store: Store, selection: Selection) -> pd.DataFrame:
    """Listed nodes on which one attempt held more GPUs than the inventory of that time says.

    Columns cluster, node, gpus (of the inventory), n_gpus (the most an attempt held), n_attempts.
    Only attempts on one node tell it: of several their GPUs may lie elsewhere than evenly.
    """
    # Asked first: hardly any attempt holds more than the smallest node has, and what holds less is
    # then not read.
    ((least,),) = store.rows(
        f"""SELECT min(gpus) FROM nodes
            WHERE source = 'listed' AND {equal(cluster=selection.cluster)}""",
        selection.parameters,
    )
    return store.frame(
        f"""SELECT cluster, node, min(spell.gpus) AS gpus, max(held.n_gpus) AS n_gpus,
              count(*) AS n_attempts
            FROM job_nodes held JOIN nodes spell USING (cluster, node)
            JOIN jobs USING (cluster, attempt_key)
            WHERE spell.source = 'listed' AND held.n_gpus > spell.gpus AND n_nodes = 1
              AND held.n_gpus > $least
              AND held.start_at >= spell.first_seen_at
              AND (spell.last_seen_at IS NULL OR held.start_at < spell.last_seen_at)
              AND {equal(cluster=selection.cluster)}
            GROUP BY cluster, node ORDER BY cluster, node""",
        selection.parameters | {"least": least},
    )


def differing(store: Store, selection: Selection) -> pd.DataFrame:
    """Listed nodes whose GPUs are others than site.toml says of a node of their cluster.

    Columns cluster, gpus, n_nodes; nodes without GPUs are none of them.
    """
    rows = store.frame(
        f"""SELECT cluster, gpus, count(DISTINCT node) AS n_nodes FROM nodes
            WHERE source = 'listed' AND gpus > 0 AND {equal(cluster=selection.cluster)}
            GROUP BY cluster, gpus ORDER BY cluster, gpus""",
        selection.parameters,
    )
    rows = rows.assign(stated=_stated(store, rows["cluster"]))
    return rows[rows["stated"].notna() & rows["stated"].ne(rows["gpus"])]


def _stated(store: Store, clusters: pd.Series) -> pd.Series:
    """GPUs of a node of each cluster, as site.toml states them; NaN where it does not."""
    known = {name: one.gpus_per_node for name, one in load_site(store.root).clusters.items()}
    return clusters.map(known).astype(float)
