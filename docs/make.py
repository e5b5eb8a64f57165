"""Writes what documents take from the program: the sources in sources.md, commands.md whole.

python docs/make.py            # `make docs`
"""

from __future__ import annotations

import os
import re
import textwrap
from importlib import import_module
from pathlib import Path

from app.cli import commands, module_of, parser_of
from data.ingest.readers import known_readers

HERE = Path(__file__).parent
COMMANDS = """\
# Commands

Made from `--help` by `make docs`. Every command takes `--store DIR` (default `$FAULTLINE_STORE`,
else `./store`) where it reads one, and `--format table|json|csv`: without it a table on a terminal,
JSON elsewhere. Exit code 0 is done, 2 means that the input or the request is at fault, 1 is a bug.
"""


def sources() -> str:
    """The table of sources: a row a reader."""
    rows = [f"| `{reader.name}` | {reader.reads} |" for reader in known_readers().values()]
    return "\n".join(["| source | reads |", "|---|---|", *rows]) + "\n"


def with_sources(page: str) -> str:
    """A page with its table of sources as the readers state it."""
    return re.sub(r"\| source \| reads \|\n(\|.*\n)+", lambda _: sources(), page)


def all_commands() -> str:
    """The page of commands: what each says of itself."""
    os.environ["COLUMNS"] = "90"  # else as wide as the terminal
    rows = (f"| [{name}](#{name}) | {text} |\n" for name, text in commands().items())
    parts = [COMMANDS, "\n| command | does |\n|---|---|\n", *rows]
    for name, text in commands().items():
        parser = parser_of(name, text)
        said = parser.format_help()
        example = import_module(f"app.cli.{module_of(name)}").EXAMPLE
        options = said.partition("\nexample:")[0].partition(f"{text}\n")[2]
        parts += [
            f"\n## {name}\n\n{textwrap.fill(_sentence(text), 100)}\n",
            f"\n```sh\n{example}\n```\n\n```\n{options.strip()}\n```\n",
        ]
    return "".join(parts)


def _sentence(text: str) -> str:
    """A text that begins and ends like a sentence."""
    return f"{text[:1].upper()}{text[1:]}."


if __name__ == "__main__":
    page = HERE / "sources.md"
    page.write_text(with_sources(page.read_text("utf-8")), encoding="utf-8")
    (HERE / "commands.md").write_text(all_commands(), encoding="utf-8")
