"""What is declared of a table holds together, whichever module declares it."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from importlib import import_module

import duckdb
import pytest

from data import tables as declared
from data.current import SCHEMA_VERSION
from data.publish.schema import update
from data.tables import Table, people, records, tables


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    update(connection, from_version=0)
    return connection


def test_every_module_of_the_folder_declares_tables_each_by_its_name() -> None:
    folder = declared.__path__[0]
    code = f"import pathlib; print(*(p.stem for p in pathlib.Path({folder!r}).glob('*.py')))"
    modules = set(subprocess.check_output([sys.executable, "-c", code], text=True).split())
    seen = set()
    for module in modules - {"__init__", "table"}:
        values = vars(import_module(f"{declared.__name__}.{module}"))
        named = {n: v.name for n, v in values.items() if isinstance(v, Table)}
        assert named, module
        assert named == {name: name.lower() for name in named}
        assert not seen & named.keys()
        seen |= named.keys()
    assert {name.lower() for name in seen} == tables().keys()


def test_a_change_of_the_tables_is_a_new_version_of_the_schema() -> None:
    columns = {
        name: {c: t.type for c, t in table.columns.items()} for name, table in tables().items()
    }
    digest = hashlib.sha256(json.dumps(columns, sort_keys=True).encode()).hexdigest()[:12]
    # Another digest: raise data.current.SCHEMA_VERSION, else stores of before lack what is new.
    assert (SCHEMA_VERSION, digest) == (21, "a274c616b16c")


@pytest.mark.parametrize("name", tables())
def test_the_columns_that_other_facts_name_are_there(name: str) -> None:
    table = tables()[name]
    named = set(table.key)
    if table.coverage is not None:
        assert table.time is not None
        named |= {table.coverage.by} - {None}
    if name in records():
        rule = records()[name]
        named |= {rule.later, *rule.stated, *(rule.derived_with or ())} - {None}
    assert named <= table.columns.keys()


def test_records_of_a_node_by_name_can_be_told_apart_in_time() -> None:
    keyed = [rule for rule in records().values() if "node" in rule.key]
    assert keyed
    assert all(rule.later is not None for rule in keyed)


@pytest.mark.parametrize("name", [name for name, table in tables().items() if table.time])
def test_the_time_of_a_row_is_a_timestamp(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    table = tables()[name]
    where = table.coverage.where if table.coverage else "true"
    rows = connection.execute(f"DESCRIBE SELECT {table.time} FROM {name} WHERE {where}").fetchall()
    assert rows[0][1] == "TIMESTAMP WITH TIME ZONE"


def test_columns_of_one_name_name_the_same_people() -> None:
    for name, table in tables().items():
        for column, facts in table.columns.items():
            assert facts.people == people().get(column), f"{name}.{column}"


def test_the_declarations_are_read_without_pandas_or_duckdb() -> None:
    code = (
        "import sys; from data.tables import tables; tables(); "
        "sys.exit(bool({'pandas', 'duckdb', 'pyarrow', 'numpy'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
