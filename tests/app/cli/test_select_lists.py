"""Select lists drawn by chance stay within the limits of time, memory and width, and are right.

`pytest -s -m slow tests/app/cli/test_select_lists.py` asks 1,000 and prints what they cost: each as
the page does, one in ten by the command too.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from app.actions import PAGE_LIMITS
from app.figures.explore import result_chart
from app.reports import query_files
from app.show import terminal
from data.errors import QueryError
from data.sandbox import QueryResult, RunningQuery, keep_spares
from data.store import require_current
from tests.app.cli.select_lists import drawn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

N_ALL, N_NOW = 1_000, 8
EVERY = 10
"""Of so many one goes through the command, too."""
FORMS = ("table", "json", "csv")
MOST_COMPARED = 5_000
"""Columns that DuckDB without a sandbox is asked for."""
MOST_CPU_S, MOST_MB, MOST_WALL_S = 3.0, 200.0, 25.0
"""Of the parent, for one query with its frame and chart; the wall limit of a query is 20 s."""
LIMITED = re.compile(
    r"nested more than 100 levels|ran longer than|Out of Memory|ended its process|first row is larger"
    r"|processor time|first column take more|depth limit"
)
"""What a query is told that a limit ended."""


@dataclass
class Cost:
    """What came of the queries, and the dearest of them."""

    outcomes: Counter[str] = field(default_factory=Counter)
    cpu_s: float = 0.0
    wall_s: float = 0.0
    mb: float = 0.0
    printing_s: float = 0.0
    command_s: float = 0.0
    n_commands: int = 0

    def told(self) -> str:
        """The table of figures."""
        lines = [f"{name:64} {n:>7,}" for name, n in sorted(self.outcomes.items())]
        lines += [
            f"{'most processor time of the parent, s':64} {self.cpu_s:>7.2f}",
            f"{'most memory of the parent beyond that before, MB':64} {self.mb:>7.0f}",
            f"{'longest, s':64} {self.wall_s:>7.2f}",
            f"{'most processor time of printing in three forms, s':64} {self.printing_s:>7.2f}",
            f"{'asked by the command, too':64} {self.n_commands:>7,}",
            f"{'most processor time of a command, s':64} {self.command_s:>7.2f}",
        ]
        return "\n".join(lines)


@pytest.fixture(scope="module")
def database(sacct_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The snapshot of the store, in a place of its own, where plain DuckDB may open it too."""
    file = sacct_store / require_current(sacct_store).file
    return Path(shutil.copy(file, tmp_path_factory.mktemp("plain")))


@pytest.fixture(scope="module")
def plain(database: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB without a sandbox."""
    with duckdb.connect(str(database), read_only=True, config={"threads": 1}) as con:
        con.execute("SET TimeZone = 'UTC'")
        yield con


@pytest.fixture(autouse=True, scope="module")
def _spares() -> Iterator[None]:
    keep_spares(2)
    yield
    keep_spares(0)


@pytest.mark.parametrize(
    "seeds",
    [range(N_NOW), *(pytest.param(range(at, at + 250), marks=pytest.mark.slow)
                     for at in range(0, N_ALL, 250))],
    ids=lambda seeds: f"{seeds.start}-{seeds.stop}",
)  # fmt: skip
def test_select_lists_by_chance_are_answered_as_duckdb_does_within_their_limits(
    database: Path,
    plain: duckdb.DuckDBPyConnection,
    sacct_store: Path,
    faultline: Callable[..., Any],
    seeds: range,
) -> None:
    cost = Cost()
    for seed in seeds:
        sql = drawn(seed)
        result = _asked(database, sql, cost)
        cost.outcomes[_outcome(plain, sql, result)] += 1
        if isinstance(result, QueryResult):
            _printed(result, cost)
        if seed % EVERY == 0:
            _by_command(faultline, sacct_store, (sql, FORMS[seed // EVERY % 3]), result, cost)
    print(f"\n{cost.told()}")
    assert cost.outcomes["as plain DuckDB answers"] > len(seeds) // 4
    assert cost.cpu_s < MOST_CPU_S
    assert cost.mb < MOST_MB
    assert cost.wall_s < MOST_WALL_S


LARGEST = {
    "long names": "SELECT COLUMNS(*) AS '{name}\\0' FROM (SELECT {columns} FROM range(10000))",
    "numbers": "SELECT COLUMNS(*) FROM (SELECT {columns} FROM range(10000))",
    "words": "SELECT COLUMNS(*)::VARCHAR || ' word' FROM (SELECT {columns} FROM range(10000))",
    "times": "SELECT to_timestamp(COLUMNS(*)) FROM (SELECT {columns} FROM range(10000))",
    "lists": "SELECT [[COLUMNS(*)], [1]] FROM (SELECT {columns} FROM range(10000))",
    "empty lists": "SELECT list_transform(range(400000), lambda x: []::INTEGER[]) AS v",
    "deep lists": f"SELECT {'[' * 99}range{']' * 99} AS v FROM range(10000)",
}
"""Answers that end at the limits of rows, values, bytes or names."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", LARGEST)
def test_the_largest_answers_cost_the_dashboard_little(database: Path, kind: str) -> None:
    columns = ", ".join(f"range % 997 + {place} AS c{place}" for place in range(1_000))
    sql = LARGEST[kind].format(columns=columns, name="n" * 900)
    cost = Cost()
    result = _asked(database, sql, cost)
    assert isinstance(result, QueryResult), result
    _printed(result, cost)
    size = f"{len(result.rows):,} rows, {len(result.columns):,} columns"
    told = [f"{kind}, {size}: {cost.cpu_s:.2f} s, {cost.mb:.0f} MB"]
    told.append(f"printed in three forms: {cost.printing_s:.2f} s")
    asked = query_files.Asked(sql, "", {}, 1, synthetic=False)
    for form, write in query_files.WRITERS.items():
        _forget_peak()
        before, began = _memory_mb("VmRSS"), time.process_time()
        content = write(result, asked)
        mb = _memory_mb("VmHWM") - before
        told.append(
            f"{form} {len(content) / 2**20:.0f} MB: {time.process_time() - began:.2f} s, {mb:.0f} MB"
        )
        assert mb < MOST_MB
    print(f"\n{'; '.join(told)}")
    assert (cost.cpu_s < MOST_CPU_S, cost.mb < MOST_MB) == (True, True)


def _asked(database: Path, sql: str, cost: Cost) -> QueryResult | QueryError:
    """What the page has of a query: its rows, their frame and the chart that suits them."""
    _forget_peak()
    before, began, cpu = _memory_mb("VmRSS"), time.monotonic(), time.process_time()
    try:
        result: QueryResult | QueryError = RunningQuery(database, sql, PAGE_LIMITS).result()
    except QueryError as error:
        result = error
    cost.wall_s = max(cost.wall_s, time.monotonic() - began)
    if isinstance(result, QueryResult):
        frame = query_files.frame_of(result)
        result_chart.suggested(frame)
        assert frame.shape == (len(result.rows), len(result.columns))
    cost.cpu_s = max(cost.cpu_s, time.process_time() - cpu)
    cost.mb = max(cost.mb, _memory_mb("VmHWM") - before)
    return result


def _outcome(con: duckdb.DuckDBPyConnection, sql: str, result: QueryResult | QueryError) -> str:
    """What came of it; fails where DuckDB without a sandbox says something else."""
    if isinstance(result, QueryError):
        assert "\n" not in str(result)
        if LIMITED.search(str(result)):
            return "refused by a limit, in one line"
        with pytest.raises(duckdb.Error):
            con.execute(sql).fetchall()
        return "refused as plain DuckDB refuses it, in one line"
    assert len(set(result.names)) == len(result.columns) <= PAGE_LIMITS.max_columns
    if len(result.columns) + result.columns_left_out > MOST_COMPARED:
        return "cut at 1,000 columns of more than can be compared, told"
    expected = con.execute(sql)
    names = [each[0] for each in con.description or []]
    shown = len(result.columns)
    assert (list(result.columns), result.columns_left_out) == (names[:shown], len(names) - shown)
    if result.truncated:
        return "cut in its rows, told"
    rows = [row[:shown] for row in expected.fetchall()]
    assert sorted(map(_text, result.rows)) == sorted(map(_text, rows)), sql
    if result.columns_left_out:
        return "cut in its columns, told; these as plain DuckDB answers"
    return "as plain DuckDB answers"


def _text(row: tuple[Any, ...]) -> str:
    """A row as text: not a number equals itself, and both names of UTC are one."""
    return repr(row).replace("datetime.timezone.utc", "<UTC>")


def _printed(result: QueryResult, cost: Cost) -> None:
    """Prints the rows in each form."""
    began = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        for form in FORMS:
            terminal.print_rows(result.names, result.rows, form)
    cost.printing_s = max(cost.printing_s, time.process_time() - began)


def _by_command(
    faultline: Callable[..., Any],
    store: Path,
    asked: tuple[str, str],
    result: QueryResult | QueryError,
    cost: Cost,
) -> None:
    """The command says the same, or refuses the same."""
    sql, form = asked
    began = time.process_time()
    said = faultline("sql", sql, "--store", store, "--format", form)
    cost.command_s = max(cost.command_s, time.process_time() - began)
    cost.n_commands += 1
    if isinstance(result, QueryError):
        assert (said.code, said.err.count("\n"), said.out) == (2, 1, "")
        return
    assert said.code == 0
    assert ("columns: name those" in said.err) == bool(result.columns_left_out)
    if form == "json":
        assert len(said.json) >= len(result.rows)
        assert all([*row] == [*result.names] for row in said.json)
        assert json.dumps(said.json)
    else:
        assert said.out.count("\n") > len(result.rows)


def _forget_peak() -> None:
    """The most memory that this process had counts from now on."""
    Path("/proc/self/clear_refs").write_text("5")


def _memory_mb(name: str) -> float:
    """Memory of this process by its name in /proc, MB."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition(f"{name}:")[2].split()[0]) / 1024
