"""What people decided, as it lies over a snapshot when it is read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from analytics.errors import AnalysisError
from data.state import ACKNOWLEDGED, RESOLVED, State
from data.tables.failures import INCIDENT_MEMBERS, INCIDENTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from data.tables import Table

INTO, OF = "merged_into", "incident"
"""Fields by which people arrange incidents: of an incident, that it is the same as another; of an
attempt, of which incident it is."""
STATUS = "status"
_TAKES_BACK = {"open": ("acknowledged", "resolved"), "acknowledged": ("resolved",)}
NONE = "none"
"""Value of `OF` where the attempt is of no incident."""


@dataclass(frozen=True)
class Said:
    """Annotations that hold, as parameters of queries."""

    version: str = ""
    """Changes with every annotation and undo."""
    parameters: dict[str, list[str]] = field(default_factory=lambda: _columns([]))

    def pairs(self, kind: str, field: str) -> list[tuple[str, str]]:
        """Key of the target and value of what was said so, in the order in which it was said."""
        return [
            (key, value) for of, key, name, value in self._rows() if (of, name) == (kind, field)
        ]

    def decided(self) -> list[tuple[str, str]]:
        """Attempts whose cause a person decided, each with it; in order of the attempts."""
        return sorted(self.pairs("attempt", "cause"))

    def _rows(self) -> Iterator[tuple[str, ...]]:
        """Kind, key, field and value of each."""
        names = ("said_kind", "said_key", "said_field", "said_value")
        return zip(*(self.parameters[name] for name in names), strict=True)


def read_said(root: Path) -> Said:
    """What people said about a store, up to now."""
    state = State(root)
    version = state.version()
    if not version:
        return Said()
    from data.site import load_site  # here: it takes longer than all else where nobody said a thing

    taxonomy = load_site(root).causes
    rows: list[tuple[str, ...]] = []
    for _, target, _, _, name, value in state.annotations():
        kind, _, key = target.partition(":")
        try:
            domain = taxonomy.domain_of(value) if name == "cause" else ""
        except AnalysisError:
            continue  # a cause that the site's taxonomy no longer has decides nothing
        rows.append((kind, key, name, value, domain))
    rows += _standing(state.statuses())
    return Said(version, _columns(rows))


def _standing(statuses: Iterable[tuple[str, str, str, str]]) -> Iterator[tuple[str, ...]]:
    """When and by whom each target was acknowledged and resolved, as long as that stands.

    The first acknowledgement counts, and the first word that it is resolved; whoever says open
    again takes back both, whoever says acknowledged again that it is resolved.
    """
    since: dict[str, dict[str, tuple[str, str]]] = {}
    for target, author, made_at, status in statuses:
        held = since.setdefault(target, {})
        for other in _TAKES_BACK.get(status, ()):
            held.pop(other, None)
        if (STATUS, status) in (ACKNOWLEDGED, RESOLVED):
            held.setdefault(status, (made_at, author))
    for target, held in since.items():
        kind, _, key = target.partition(":")
        for status, (made_at, author) in held.items():
            yield kind, key, f"{status}_at", made_at, ""
            yield kind, key, f"{status}_by", author, ""


def _columns(rows: list[tuple[str, ...]]) -> dict[str, list[str]]:
    """Parallel lists, by the name of the parameter."""
    names = ("said_kind", "said_key", "said_field", "said_value", "said_domain")
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def _typed(table: Table) -> str:
    """A list of rows of a table, as SQL names its type."""
    columns = (f'"{name}" {column.type}' for name, column in table.columns.items())
    return f"STRUCT({', '.join(columns)})[]"


ARRANGED = f"""
arranged AS (SELECT unnest(CAST($arranged_incidents AS {_typed(INCIDENTS)}), max_depth := 2)),
incidents AS NOT MATERIALIZED (
  FROM main.incidents WHERE incident_id NOT IN (SELECT incident_id FROM arranged)
  UNION ALL BY NAME FROM arranged),
incident_members AS NOT MATERIALIZED (
  FROM main.incident_members WHERE incident_id NOT IN (SELECT incident_id FROM arranged)
  UNION ALL BY NAME
  SELECT unnest(CAST($arranged_members AS {_typed(INCIDENT_MEMBERS)}), max_depth := 2))
"""
"""The tables of incidents as people arranged them (`data.arranged`), under their own names: every
query that reads them begins with this."""
AS_DERIVED = "arranged AS (SELECT 1)"
"""What stands there where nobody arranged any."""

SAID = """
said AS (
  SELECT unnest(CAST($said_kind AS VARCHAR[])) AS kind,
    unnest(CAST($said_key AS VARCHAR[])) AS key,
    unnest(CAST($said_field AS VARCHAR[])) AS field,
    unnest(CAST($said_value AS VARCHAR[])) AS value,
    unnest(CAST($said_domain AS VARCHAR[])) AS domain)
"""
"""Annotations that hold: kind and key of the target, field, value, domain of a cause."""

VERDICTS = f"""{SAID},
decided AS (
  SELECT split_part(key, '/', 1) AS cluster, key[length(split_part(key, '/', 1)) + 2:]
      AS attempt_key, value AS said_cause, domain AS said_domain
  FROM said WHERE kind = 'attempt' AND field = 'cause'),
verdict AS (
  SELECT failures.* REPLACE (coalesce(said_cause, derived_cause, cause) AS cause,
    coalesce(said_domain, derived_domain, domain) AS domain,
    CASE WHEN said_cause IS NULL THEN coalesce(derived_method, method) ELSE 'human' END AS method,
    CASE WHEN said_cause IS NULL THEN coalesce(derived_confidence, confidence) ELSE 1.0 END
      AS confidence,
    coalesce(derived_cause, cause) AS derived_cause,
    coalesce(derived_domain, domain) AS derived_domain,
    coalesce(derived_method, method) AS derived_method,
    coalesce(derived_confidence, confidence) AS derived_confidence)
  FROM failures LEFT JOIN decided USING (cluster, attempt_key)
  UNION ALL BY NAME
  SELECT cluster, attempt_key, jobs.end_at AS failed_at, jobs.state, jobs.job_id AS job,
    jobs."user" AS job_user, jobs.account AS job_account, jobs.partition AS job_partition,
    jobs.n_gpus AS job_gpus, jobs.n_nodes AS job_nodes, jobs.start_at AS job_start_at,
    jobs.state = 'NODE_FAIL' OR jobs.failed_node IS NOT NULL AS node_lost, said_cause AS cause,
    said_domain AS domain, 'human' AS method, 1.0 AS confidence, '[]' AS evidence,
    '[]' AS alternatives, 'unknown' AS derived_cause, 'unknown' AS derived_domain,
    0.0 AS derived_confidence, 'none' AS derived_method
  FROM decided JOIN jobs USING (cluster, attempt_key)
  WHERE (cluster, attempt_key) NOT IN (
    SELECT cluster, attempt_key FROM failures SEMI JOIN decided USING (cluster, attempt_key)))
"""
"""Verdicts by the evidence, what people decided over them, and attempts that only they judged.

It starts from what the evidence names: `failures` has the decisions of the last publish written
into it, of which some may have been undone since.
"""
AS_JUDGED = f"""{SAID},
verdict AS NOT MATERIALIZED (
  SELECT * REPLACE (cause AS derived_cause, domain AS derived_domain,
    confidence AS derived_confidence, method AS derived_method) FROM failures)
"""
"""What stands there where nobody decided a cause, now or by the last publish: each query then reads
of `failures` only what it asks for."""
FAILED_ATTEMPTS = f"""{VERDICTS},
failed_attempt AS NOT MATERIALIZED (
  SELECT * EXCLUDE (job_start_at), job AS job_id, job_user AS "user", job_account AS account,
    job_partition AS partition, job_gpus AS n_gpus, job_nodes AS n_nodes, job_start_at AS start_at
  FROM verdict)
"""
"""The same with the attempts that they are about, under the names that `jobs` has for them: what
sums failures by partition, account and size need not look attempts up."""
