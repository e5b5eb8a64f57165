"""What each figure of the table is compared with: `python -m tests.benchmarks.floors NAME ...`."""

from __future__ import annotations

import os
import sys

TYPED = {
    "Submit": "TIMESTAMP", "Eligible": "TIMESTAMP", "Start": "TIMESTAMP", "End": "TIMESTAMP",
    "ElapsedRaw": "BIGINT", "NNodes": "INTEGER", "NCPUS": "INTEGER", "Restarts": "INTEGER",
}  # fmt: skip


def typed_read(path: str, database: str) -> None:
    """DuckDB reads an accounting file with its types into one table of a database."""
    import duckdb

    with open(path, encoding="utf-8") as stream:  # noqa: PTH123 - pathlib is not the floor's
        names = stream.readline().rstrip("\n").split("|")
    columns = ", ".join(f"'{name}': '{TYPED.get(name, 'VARCHAR')}'" for name in names)
    with duckdb.connect(database) as connection:
        connection.execute(
            f"""CREATE TABLE bare AS SELECT * FROM read_csv('{path}', delim='|', header=true,
                quote='', escape='', auto_detect=false, columns={{{columns}}})"""
        )


def copy_and_insert(path: str, warehouse: str, copy: str) -> None:
    """The file of a snapshot is copied, and an hour's records are read into a table of the copy."""
    import shutil

    shutil.copyfile(warehouse, copy)
    typed_read(path, copy)


def imports(names: str) -> None:
    """Imports the modules that a file names, as the program does: with one thread of OpenBLAS."""
    import importlib

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with open(names, encoding="utf-8") as stream:  # noqa: PTH123
        for name in stream.read().split():
            importlib.import_module(name)


def snapshot(names: str, warehouse: str) -> None:
    """The imports, and one count from a snapshot."""
    imports(names)
    import duckdb

    with duckdb.connect(warehouse, read_only=True) as connection:
        connection.execute("SELECT count(*) FROM failures").fetchall()


def text(names: str, path: str) -> None:
    """The imports, and the bytes of a file."""
    imports(names)
    with open(path, "rb") as stream:  # noqa: PTH123
        stream.read()


def parquet(names: str, path: str) -> None:
    """The imports, and a Parquet file as columns."""
    imports(names)
    import pyarrow.parquet

    pyarrow.parquet.read_table(path)


if __name__ == "__main__":
    _, floor, *arguments = sys.argv
    globals()[floor](*arguments)
