"""Work in processes of its own, which `child` starts and bounds: ad hoc SQL, and uploads.

Ad hoc SQL: one SELECT or EXPLAIN, in a process of its own that can reach nothing but a snapshot.

DuckDB calls untrusted SQL unsafe by design and its memory limit does not cover every allocation,
so several guards stand behind one another: a process that serves one query and is killed at the
wall limit, DuckDB's own parser as the judge of what is a single SELECT or EXPLAIN, a locked
configuration without files, network or extensions, limits of the operating system and, where the
kernel has it, Landlock.
"""

from data.sandbox.child import Child, SaidTooMuchError, TookTooLongError, confine, die_first
from data.sandbox.landlock import missing as landlock_missing
from data.sandbox.process import keep_spares
from data.sandbox.query import QueryResult, RunningQuery, run_query
from data.sandbox.wire import QueryLimits

__all__ = [
    "Child",
    "QueryLimits",
    "QueryResult",
    "RunningQuery",
    "SaidTooMuchError",
    "TookTooLongError",
    "confine",
    "die_first",
    "keep_spares",
    "landlock_missing",
    "run_query",
]
