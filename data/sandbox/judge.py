"""What is a single SELECT or EXPLAIN, as DuckDB's own parser sees it; on any doubt it is none."""

import re

import _duckdb as duckdb  # the engine alone starts in half the time of the package around it

from data.errors import QueryError

ONLY = "only one SELECT or EXPLAIN can be run here"
HIDDEN = (
    "duckdb_databases",
    "duckdb_external_file_cache",
    "duckdb_extension",
    "duckdb_log",
    "duckdb_profiling_settings",
    "duckdb_secrets",
    "duckdb_settings",
    "duckdb_temporary_files",
    "pg_settings",
    "pragma_database_list",
)
"""They show where the store lies on the server. No DuckDB syntax writes a name other than plainly,
so looking for it in the text, comments and strings included, misses none."""
INDIRECT = ("json_execute_serialized_sql", "json_serialize_plan", "query_table")
"""They run, or bind, text that is put together while the query runs: no one can judge it before."""
_QUERY_CALL = re.compile(r'\bquery"?[^!-~]*(?:\(|/\*|--)')
_SETTING = re.compile(r"current_setting")
_TIME_ZONE = re.compile(r"current_setting\s*\(\s*'timezone'\s*\)")
_BLANK = r"(?:\s|--[^\n]*\n|/\*(?:(?!/\*|\*/).)*\*/)*"
_EXPLAIN = re.compile(
    rf"{_BLANK}EXPLAIN\b\s*(?:ANALY[ZS]E\b|\([^()]*\))?\s*(?P<explained>[A-Z(].*)",
    re.IGNORECASE | re.DOTALL,
)


def only_statement(con: duckdb.DuckDBPyConnection, sql: str, folder: str) -> duckdb.Statement:
    """The one SELECT or EXPLAIN in the text; the object parsed here is the one that runs.

    `folder` is the place of the store, which no query learns.
    """
    statement = _parsed(con, sql)
    settings = con.execute(
        "SELECT name FROM duckdb_settings() WHERE contains(value, ?)", [folder]
    ).fetchall()
    _refuse_hidden(sql.casefold(), (*HIDDEN, *(name for (name,) in settings)))
    if statement.type.name == "EXPLAIN":
        _refuse_explained(con, sql)
    return statement


def bound(statement: duckdb.Statement, known: dict[str, object]) -> dict[str, object]:
    """Of the parameters known, those that a statement names; it must name no other."""
    named = sorted(statement.named_parameters)
    unknown = [name for name in named if name not in known]
    if unknown:
        there = ", ".join(f"${name}" for name in known) or "none"
        shown = "?" if unknown[0].isdigit() else f"${unknown[0]}"
        raise QueryError(f"parameter {shown} is unknown: there are {there}")
    return {name: known[name] for name in named}


def _parsed(con: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    """The one statement in the text, which is a SELECT or an EXPLAIN."""
    try:
        kinds = [(statement, statement.type.name) for statement in con.extract_statements(sql)]
    except duckdb.Error:
        raise
    except Exception as error:  # a kind of statement that the Python API has no name for
        raise QueryError(f"{ONLY} ({error})") from error
    if not kinds:
        raise QueryError("the query is empty: write one SELECT or EXPLAIN")
    if len(kinds) > 1:
        raise QueryError(f"{ONLY}, not {len(kinds)} statements")
    statement, kind = kinds[0]
    if kind == "MULTI":
        kind = "several statements in one (a PIVOT needs its values: ON column IN (...))"
    if kind not in {"SELECT", "EXPLAIN"}:
        raise QueryError(f"{ONLY}, not {kind}")
    return statement


def _refuse_explained(con: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Refuses an EXPLAIN of anything but a SELECT: EXPLAIN ANALYZE runs what it explains."""
    found = _EXPLAIN.fullmatch(sql)
    if found is None:
        raise QueryError("write EXPLAIN, ANALYZE or options in brackets, and the SELECT at once")
    try:
        kinds = [each.type.name for each in con.extract_statements(found["explained"])]
    except Exception as error:  # what DuckDB takes as a whole only is not what was meant here
        raise QueryError("only a SELECT can be explained here") from error
    if kinds != ["SELECT"]:
        raise QueryError(f"only a SELECT can be explained here, not {' and '.join(kinds)}")


def _refuse_hidden(text: str, hidden: tuple[str, ...]) -> None:
    """Refuses what shows the server, or runs text that nobody has judged."""
    for name in hidden:
        if name in text:
            raise QueryError(f"{name} is not for ad hoc queries: it shows the server's files")
    for name in INDIRECT:
        if name in text:
            raise QueryError(f"{name} is not for ad hoc queries: write what it runs as the query")
    if _QUERY_CALL.search(text):
        raise QueryError("query() is not for ad hoc queries: write what it runs as the query")
    if len(_SETTING.findall(text)) != len(_TIME_ZONE.findall(text)):
        raise QueryError(
            "current_setting is not for ad hoc queries, save for 'TimeZone': it shows the server"
        )
