"""faultline xid: what a GPU error (XID) or switch error (SXid) means, or the ones in a kernel
log.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from analytics.errors import AnalysisError
from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    from app.actions import Options

EXAMPLE = "faultline xid 79"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A code, or a file."""
    parser.add_argument("code", nargs="?", type=_code, metavar="CODE", help="XID, e.g. 79")
    parser.add_argument("--sxid", action="store_true", help="CODE is an SXid (NVSwitch)")
    parser.add_argument("--parse", metavar="FILE", help="a kernel log; - is standard input")
    parser.add_argument(
        "--driver", metavar="V", help="version of the driver: it decides how XID 144 to 150 decode"
    )
    parser.add_argument("--node", metavar="NAME", help="host of lines that name none")
    parser.add_argument(
        "--timezone", metavar="TZ", help="zone of local times in the file (default UTC)"
    )
    parser.add_argument(
        "--boot-at", type=options.moment, metavar="TIME", help="boot time, for times since boot"
    )
    parser.add_argument("--year", type=options.whole, metavar="Y", help="year of times without one")
    options.add(parser, "partial", "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints an entry of the catalog, or the events of a file."""
    from app.answers.failures import xid

    if (arguments.code is None) == (arguments.parse is None):
        raise AnalysisError("give a CODE or --parse FILE, one of them: e.g. `faultline xid 79`")
    if arguments.driver is not None:
        from analytics.failures.xid_nvlink5 import layout_of_driver

        layout_of_driver(arguments.driver)
    if arguments.parse is not None:
        if arguments.sxid:
            raise AnalysisError("--sxid goes with a CODE: --parse knows both kinds by their lines")
        answer = xid.of_log(arguments.parse, _about(arguments), arguments.driver)
    elif arguments.sxid:
        answer = xid.of_sxid(arguments.code)
    else:
        answer = xid.of_xid(arguments.code, arguments.driver)
    terminal.write(answer, arguments.format)
    return 0


def _about(arguments: argparse.Namespace) -> Options:
    """What was said about the log."""
    from app.actions import Options, checked_zone

    return Options(
        node=arguments.node or "",
        timezone=checked_zone(arguments.timezone),
        boot_at=arguments.boot_at,
        year=arguments.year,
        partial=arguments.partial,
    )


def _code(text: str) -> int:
    """An error code."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no code: give a whole number, e.g. 79")
    return int(text)
