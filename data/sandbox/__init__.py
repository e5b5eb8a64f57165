"""Ad hoc SQL: one SELECT or EXPLAIN, in a process of its own that can reach nothing but a snapshot.

DuckDB calls untrusted SQL unsafe by design and its memory limit does not cover every allocation,
so four guards stand behind one another: a process that is killed at the wall limit, a locked
configuration without files, network or extensions, limits of the operating system, and DuckDB's
own parser as the judge of what is a single SELECT or EXPLAIN.
"""

from data.sandbox.query import QueryLimits, QueryResult, run_query

__all__ = ["QueryLimits", "QueryResult", "run_query"]
