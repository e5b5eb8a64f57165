"""faultline serve: serve the dashboard on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from app.cli import options
from data.errors import DataError

if TYPE_CHECKING:
    import argparse

EXAMPLE = "faultline serve --store ./demo-store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where to listen, and whether a link is needed."""
    options.add(parser, "store")
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="default 127.0.0.1")
    parser.add_argument("--port", type=int, default=8501, metavar="N", help="default 8501")
    parser.add_argument(
        "--no-auth", action="store_true", help="let everyone in who reaches the address"
    )
    parser.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="keep the link over a restart: a file of tokens, made where there is none; "
        "a line is TOKEN or NAME TOKEN, a person's own",
    )
    parser.add_argument(
        "--access-log", action="store_true", help="a line on standard error for each request"
    )


def run(arguments: argparse.Namespace) -> int:
    """Serves until Ctrl-C."""
    from app.server import serve

    if arguments.no_auth and arguments.token_file is not None:
        raise DataError("--no-auth and --token-file contradict each other: leave one of them out")
    serve(
        arguments.store,
        host=arguments.host,
        port=arguments.port,
        auth=not arguments.no_auth,
        access_log=arguments.access_log,
        token_file=arguments.token_file,
    )
    return 0
