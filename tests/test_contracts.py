"""Who imports what, as allow-lists: a new file that imports more, or a list that allows more than
the tree needs, fails. Layers stand in pyproject.toml; here stands which package knows which library.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
OF_LIBRARY = {
    "duckdb": "data.database_errors data.ingest data.publish data.reduce data.sandbox data.store",
    "ibis": "data.reduce",
    "pyspark": "data.reduce",
    "sqlite3": "data.state",
    "streamlit": "app.ask app.main app.server app.show app.views app.widgets",
    "plotly": "app.figures",
    "matplotlib": "app.show",
    "reportlab": "app.show",
    "starlette": "app.server",
    "uvicorn": "app.server",
    "requests": "",
    "urllib": (
        "app.alerts app.answers app.server app.show app.words data.collect data.posting "
        "data.reduce data.site data.site_alerts"
    ),
    "socket": "app.server data.collect data.reduce",
    "pickle": "app.ask",
    "subprocess": "app.server data.collect data.sandbox",
}
"""Library -> packages that may import it; its parts count as it."""
OF_ANALYTICS = {
    "data.ingest": "errors failures.log_classifier.sieve nodes.links.samples nodes.machines.samples "
    "patterns training.hangs.dump training.hangs.stacks training.stragglers.operations "
    "training.stragglers.trace",
    "data.queries": "failures.mass_failures failures.taxonomy failures.xid frames "
    "nodes.machines.samples training.hangs.dump training.hangs.stacks",
    "data.reduce": "failures.xid failures.xid_nvlink5 fleet.node_identity",
    "data.site": "efficiency.run_rule errors failures.precedence failures.taxonomy "
    "fleet.node_identity",
    "data.synthetic": "",
}
"""Package -> what of analytics it may import. What reads delays, samples and traces checks them by
the types of the analysis that they are for."""


def _imports(node: ast.AST) -> Iterator[str]:
    """Names that are imported when code runs; those for types alone are not."""
    names = ("body", "orelse", "handlers", "finalbody", "cases")
    bodies = (getattr(node, name, ()) for name in names)
    for child in (child for body in bodies if isinstance(body, list) for child in body):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            yield from _imports(ast.Module(child.orelse, []))
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.module is not None:
            yield from (f"{child.module}.{alias.name}" for alias in child.names)
        yield from _imports(child)


MOST_POSITIONAL = 6
"""Arguments, as signatures of libraries have that we override."""


def sources() -> Iterator[tuple[str, ast.Module]]:
    """Package, two names deep, and what a module of it says."""
    for top in ("analytics", "data", "app"):
        for path in (ROOT / top).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts[:2]), ast.parse(path.read_text("utf-8"))


@cache
def imported() -> dict[str, set[str]]:
    """Package, two names deep -> all that its modules import."""
    names = defaultdict(set)
    for package, module in sources():
        names[package] |= {*_imports(module)}
    return names


def test_no_function_takes_more_positional_arguments() -> None:
    for package, module in sources():
        for function in ast.walk(module):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                arguments = function.args.posonlyargs + function.args.args
                taken = [argument.arg for argument in arguments]
                n = len(taken) - (taken[:1] in (["self"], ["cls"]))
                assert n <= MOST_POSITIONAL, f"{package}: {function.name} takes {n}"


def _is_of(name: str, library: str) -> bool:
    return f"{name.removeprefix('_')}.".startswith(f"{library}.")


@pytest.mark.parametrize("library", OF_LIBRARY)
def test_a_library_is_imported_where_it_may_be_and_nowhere_else(library: str) -> None:
    packages = {p for p, names in imported().items() if any(_is_of(n, library) for n in names)}
    assert packages == {*OF_LIBRARY[library].split()}


@pytest.mark.parametrize("package", OF_ANALYTICS)
def test_a_package_takes_of_analytics_what_it_may_and_no_more(package: str) -> None:
    names = {
        n.removeprefix("analytics.") for n in imported()[package] if n.startswith("analytics.")
    }
    allowed = OF_ANALYTICS[package].split()
    assert not {name for name in names if not any(_is_of(name, of) for of in allowed)}
    assert not {of for of in allowed if not any(_is_of(name, of) for name in names)}


def test_an_import_that_is_not_allowed_is_seen(tmp_path: Path) -> None:
    text = "if TYPE_CHECKING:\n    import plotly\nelse:\n    import socket\n"
    text += "def f(x):\n  match x:\n    case 1:\n      from _duckdb import connect\n"
    other, name = _imports(ast.parse(text))
    assert (other, _is_of(name, "duckdb")) == ("socket", True)
    assert not _is_of("duckdbx", "duckdb")


def test_messages_of_analytics_name_no_command() -> None:
    for path in (ROOT / "analytics").rglob("*.py"):
        texts = (
            n.value
            for n in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(n, ast.Constant) and isinstance(n.value, str)
        )
        assert not [text for text in texts if "`faultline" in text], path
