"""What is a single SELECT or EXPLAIN, as DuckDB's own parser sees it; on any doubt it is none."""

import json
import re
from collections.abc import Iterator
from typing import Any

import _duckdb as duckdb  # the engine alone starts in half the time of the package around it

from data.errors import QueryError
from data.sandbox import tokens

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
"""Names of tables and functions begin so that show where the store lies on the server."""
INDIRECT = ("json_execute_serialized_sql", "json_serialize_plan", "query_table", "query")
"""They run, or bind, text that is put together while the query runs: no one can judge it before."""
BY_NAME = ("histogram", "histogram_values")
"""Functions for FROM that read the table whose name is their first value, or `source`."""
_EXPLAIN = re.compile(
    r"\s*EXPLAIN\b\s*(?:ANALY[ZS]E\b|\([^()]*\))?\s*(?P<explained>[A-Z(].*)",
    re.IGNORECASE | re.DOTALL,
)
_TREE = "SELECT json_serialize_sql(?)"


def only_statement(
    con: duckdb.DuckDBPyConnection, sql: str, folder: str, known: dict[str, object]
) -> tuple[duckdb.Statement, dict[str, object]]:
    """The one SELECT or EXPLAIN in the text, and those of the known parameters that it names.

    `folder` is the place of the store, which no query learns. The statement is parsed from the text
    without its remarks, so that none of them can hide anything. A PIVOT that names no values is
    judged as if it had some, and run as several statements, whose parameters are variables.
    """
    plain = tokens.without_comments(sql)
    judged = plain
    try:
        kinds = _kinds(con, sql)
    except duckdb.Error:
        judged = tokens.with_pivot_values(plain)
        if judged == plain or not _is_one(con, judged):
            raise
        kinds = ["MULTI"]  # a PIVOT with parameters, which DuckDB takes only where it has values
    if kinds == ["MULTI"]:
        judged = tokens.with_pivot_values(plain)
    statement = _parsed(con, judged)
    _refuse_hidden(con, judged, folder)
    named = bound(statement, known)
    if kinds != ["MULTI"]:
        return statement, named
    for name, value in named.items():
        con.execute(f"SET VARIABLE {name} = $1", [value])
    return con.extract_statements(tokens.with_variables(plain, named))[0], {}


def bound(statement: duckdb.Statement, known: dict[str, object]) -> dict[str, object]:
    """Of the parameters known, those that a statement names; it must name no other."""
    named = sorted(statement.named_parameters)
    unknown = [name for name in named if name not in known]
    if unknown:
        there = ", ".join(f"${name}" for name in known) or "none"
        shown = "?" if unknown[0].isdigit() else f"${unknown[0]}"
        raise QueryError(f"parameter {shown} is unknown: there are {there}")
    return {name: known[name] for name in named}


def _kinds(con: duckdb.DuckDBPyConnection, sql: str) -> list[str]:
    """The kind of each statement in the text."""
    try:
        return [statement.type.name for statement in con.extract_statements(sql)]
    except duckdb.Error:
        raise
    except Exception as error:  # a kind of statement that the Python API has no name for
        raise QueryError(f"{ONLY} ({error})") from error


def _is_one(con: duckdb.DuckDBPyConnection, sql: str) -> bool:
    """Whether the text is one statement."""
    try:
        return len(_kinds(con, sql)) == 1
    except duckdb.Error:
        return False


def _parsed(con: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    """The one statement in the text, which is a SELECT or an EXPLAIN."""
    kinds = _kinds(con, sql)
    if not kinds:
        raise QueryError("the query is empty: write one SELECT or EXPLAIN")
    if len(kinds) > 1:
        raise QueryError(f"{ONLY}, not {len(kinds)} statements")
    kind = kinds[0]
    if kind == "MULTI":
        kind = "several in one (a PIVOT names its values one by one, or none of them)"
    if kind not in {"SELECT", "EXPLAIN"}:
        raise QueryError(f"{ONLY}, not {kind}")
    return con.extract_statements(sql)[0]


def _selected(con: duckdb.DuckDBPyConnection, sql: str) -> str:
    """The SELECT in the text; an EXPLAIN of anything else is refused, for ANALYZE runs it."""
    if _kinds(con, sql) == ["SELECT"]:
        return sql
    found = _EXPLAIN.fullmatch(sql)
    if found is None:
        raise QueryError("write EXPLAIN, ANALYZE or options in brackets, and the SELECT at once")
    try:
        kinds = _kinds(con, found["explained"])
    except Exception as error:  # what DuckDB takes as a whole only is not what was meant here
        raise QueryError("only a SELECT can be explained here") from error
    if kinds != ["SELECT"]:
        raise QueryError(f"only a SELECT can be explained here, not {' and '.join(kinds)}")
    return found["explained"]


def _refuse_hidden(con: duckdb.DuckDBPyConnection, sql: str, folder: str) -> None:
    """Refuses names of what shows the server, or runs text that nobody has judged."""
    (told,) = con.execute(_TREE, [_selected(con, sql)]).fetchone() or ("{}",)
    try:
        tree = json.loads(told)
    except RecursionError:
        raise QueryError("the query is nested too deep: write it in parts, by WITH") from None
    if tree.get("error", True):
        raise QueryError(f"the query cannot be judged ({tree.get('error_message')}): write it anew")
    settings = con.execute(
        "SELECT name FROM duckdb_settings() WHERE contains(value, ?)", [folder]
    ).fetchall()
    hidden = (*HIDDEN, *(name for (name,) in settings))
    for node in _nodes(tree):
        for name in _names(node):
            if name.startswith(hidden):
                raise QueryError(f"{name} is not for ad hoc queries: it shows the server's files")
        _refuse_indirect(node)


def _nodes(tree: object) -> Iterator[dict[str, Any]]:
    """Every part of a parsed query."""
    left = [tree]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            yield part
            left.extend(part.values())
        elif isinstance(part, list):
            left.extend(part)


def _names(node: dict[str, Any]) -> list[str]:
    """Names of the tables and functions that a part of a query is about, in small letters."""
    found = [node.get("function_name"), node.get("table_name"), *node.get("path", ())]
    if node.get("type") == "TABLE_FUNCTION" and _function(node["function"]) in BY_NAME:
        found += _source(node["function"])
    return [_plain(name) for name in found if isinstance(name, str)]


def _source(function: dict[str, Any]) -> list[str]:
    """The name of the table that a function reads by its name."""
    sources = [
        each["expression"]
        for place, each in enumerate(function["arguments"])
        if _plain(each["name"]) == "source" or (place == 0 and not each["name"])
    ]
    if [each["class"] for each in sources] != ["COLUMN_REF"]:
        name = _function(function)
        raise QueryError(f"{name} takes the name of a table, as it is: {name}(jobs, n_gpus)")
    return [str(name) for name in sources[0]["column_names"]]


def _refuse_indirect(node: dict[str, Any]) -> None:
    name = _function(node)
    if name in INDIRECT:
        raise QueryError(f"{name} is not for ad hoc queries: write what it runs as the query")
    if name == "current_setting" and not _is_time_zone(node.get("arguments", [])):
        raise QueryError(
            "current_setting is not for ad hoc queries, save for 'TimeZone': it shows the server"
        )


def _is_time_zone(arguments: list[dict[str, Any]]) -> bool:
    """Whether the values of a call are 'TimeZone' alone, written out."""
    texts = [each["expression"].get("literal", {}).get("text") for each in arguments]
    return [str(text).casefold() for text in texts] == ["timezone"]


def _function(node: dict[str, Any]) -> str:
    return _plain(str(node.get("function_name", "")))


def _plain(name: str) -> str:
    """A name as DuckDB compares it; SHOW tells it with its quotes."""
    return name.strip('"').casefold()
