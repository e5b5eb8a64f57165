"""The command `faultline`: stdout carries data only, notices go to stderr.

Exit codes: 0 done, 2 the input or request is at fault (one line), 1 a bug.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import os
import re
import signal
import sys
import threading
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from analytics.errors import AnalysisError
from data.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from _typeshed import SupportsWrite

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
"""numpy and scipy each start a thread a processor, which waits by spinning: a sixth of the
processor time of a command, and on a login node dozens of threads. No matrix here is that large."""
FOLDER = Path(__file__).parent
COLLECTED_AT = (200_000, 20, 100)
"""How many new objects lie before Python looks for garbage: imports make fewer, none of it garbage.
As it comes, that is a quarter of the time of a command on 300,000 rows."""
_COMMAND = re.compile(r'"""faultline ([\w-]+): (.*?)\.\n?"""', re.DOTALL)
"""How the docstring of a command begins, and all that it says."""


_ENDED = {int(signal.SIGINT): "stopped", int(signal.SIGTERM): "ended by SIGTERM"}
"""Signal -> what is said of a command that it ended."""


class _Parser(argparse.ArgumentParser):
    """A parser whose refusal is one line, and whose help is missed where it cannot be written."""

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Prints the help; argparse itself would say nothing of a full disk."""
        print(self.format_help(), end="", file=file)

    def error(self, message: str) -> NoReturn:
        """Says what is wrong, what is nearest to it and where help is; exit 2."""
        message = _with_nearest(message, self)
        self.exit(2, f"{_one_line(f'{self.prog}: {message}')}: see {self.prog} --help\n")


NEAR = 0.7
"""How much of two words is the same, from which on one is taken for the other misspelt."""


def _with_nearest(message: str, parser: argparse.ArgumentParser) -> str:
    """A refusal of argparse, with the command, option or value that was probably meant."""
    choice = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
    option = re.search(r"unrecognized arguments: (-\S+)", message)
    if choice is not None:
        word, offered = choice[1], re.findall(r"[^\s,']+", choice[2])
    elif option is not None:
        word = option[1].partition("=")[0]
        offered = [name for action in parser._actions for name in action.option_strings]
    else:
        return message
    from difflib import get_close_matches  # here: a command that is right does without it

    near = get_close_matches(word, offered, n=1, cutoff=NEAR)
    if not near:
        return message
    told = message if option is not None else f"{word!r} is unknown"
    return f"{told}: did you mean {near[0]}"


class _Version(argparse.Action):
    """Says the version, which takes longer to look up than most commands take to start."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        """Prints it and ends; exit 0."""
        from importlib.metadata import version

        print(f"faultline {version('faultline')}")
        parser.exit()


def commands() -> dict[str, str]:
    """Every command with its line of help: read, since importing them all takes longer."""
    found = (help_of(path.stem) for path in sorted(FOLDER.glob("*.py")))
    return dict(each for each in found if each is not None)


def help_of(name: str) -> tuple[str, str] | None:
    """A command and what it does: a module of that name, whose docstring says `faultline NAME: `.

    None where there is no such command.
    """
    path = FOLDER / f"{module_of(name)}.py"
    if not module_of(name).isidentifier() or not path.is_file():
        return None
    said = _COMMAND.match(path.read_text("utf-8"))
    return None if said is None else (said[1], " ".join(said[2].split()))


def module_of(name: str) -> str:
    """Name of the module of a command: `validate-plan` is `validate_plan`."""
    return name.replace("-", "_")


def parser() -> argparse.ArgumentParser:
    """The parser of the names of all commands."""
    root = _Parser(
        prog="faultline",
        description="Reliability of GPU training clusters, from the logs they already have.",
    )
    root.add_argument("--version", action=_Version, nargs=0, help="say the version and end")
    offered = root.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in commands().items():
        offered.add_parser(name, help=text)
    return root


def parser_of(name: str, text: str) -> argparse.ArgumentParser:
    """The parser of the arguments of one command."""
    module = import_module(f"app.cli.{module_of(name)}")
    command = _Parser(
        prog=f"faultline {name}",
        description=text,
        epilog=f"example:\n  {module.EXAMPLE}",
        formatter_class=argparse.RawDescriptionHelpFormatter,  # an example is never wrapped
    )
    module.add_arguments(command)
    command.set_defaults(command=name, run=module.run)
    return command


def parsed(given: Sequence[str]) -> argparse.Namespace:
    """What was asked for; options may stand between files."""
    told = help_of(given[0]) if given else None
    if told is None:
        return parser().parse_args(given)
    command = parser_of(*told)
    if command.get_default("reads_rest"):  # it parses what stands behind a first word by itself
        return command.parse_args(given[1:])
    return command.parse_intermixed_args(given[1:])


def program() -> NoReturn:
    """Runs the command of this process and ends it.

    Python would take all libraries apart, object by object, before it ends: a tenth of the time of
    a command. Where threads still run it does, and waits for them.
    """
    code = main()
    _let_go_of_output()
    if threading.active_count() > 1:
        sys.exit(code)
    atexit._run_exitfuncs()
    sys.stderr.flush()
    os._exit(code)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; the process's exit code."""
    gc.set_threshold(*COLLECTED_AT)
    given = sys.argv[1:] if arguments is None else arguments
    wrong = next((text for text in given if not _is_text(text)), None)
    if wrong is not None:
        print(f"faultline: {os.fsencode(wrong)!r} is not UTF-8: rename the file", file=sys.stderr)
        return 2
    try:
        try:
            request = parsed(given)
        finally:
            sys.stdout.flush()  # help and version
    except BrokenPipeError:
        _let_go_of_output()
        return 0
    except OSError as error:  # a folder that may not be looked into, help that cannot be written
        print(_one_line(f"faultline: {_reason(error)}"), file=sys.stderr)
        _let_go_of_output()
        return 2
    try:
        with _ended_in_good_order():
            code = int(request.run(request) or 0)
            sys.stdout.flush()  # what cannot be written is told here, not when Python ends
            return code
    except (DataError, AnalysisError) as error:
        print(_one_line(f"faultline {request.command}: {error}"), file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of our output has seen enough
        _let_go_of_output()
        return 0
    except OSError as error:
        told = _reason(error, getattr(request, "store", None))
        print(_one_line(f"faultline {request.command}: {told}"), file=sys.stderr)
        _let_go_of_output()
        return 2
    except _Ended as end:
        print(f"faultline {request.command}: {_ENDED[end.number]}", file=sys.stderr)
        return 128 + end.number


def _let_go_of_output() -> None:
    """Drops output that cannot be written, which Python would else try once more as it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Ended(BaseException):
    """A signal came, and what was under way has been taken back."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def _ended_in_good_order() -> Iterator[None]:
    """Ends a command at Ctrl-C and SIGTERM as an exception would, whatever libraries make of it.

    DuckDB, for one, tells it as an error of the query that was under way.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def end(number: int, _: object) -> NoReturn:
        came.append(number)
        raise KeyboardInterrupt

    before = {each: signal.signal(each, end) for each in _ENDED}
    try:
        yield
    except BaseException as error:
        if came:
            raise _Ended(came[0]) from error
        raise
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _is_text(argument: str) -> bool:
    """Whether an argument is UTF-8, as all names in a store are."""
    try:
        argument.encode()
    except UnicodeEncodeError:
        return False
    return True


def _reason(error: OSError, store: Path | None = None) -> str:
    """What the system refused, of which file."""
    from data.disk_full import disk_full  # here: most commands do without it

    output = Path("/proc/self/fd/1").resolve()
    written = (path for path in (output, store) if path is not None and path.exists())
    if (full := disk_full(error, *written)) is not None:
        return str(full)
    name = "" if error.filename is None else f"{error.filename}: "
    return f"{name}{error.strerror or error}: check the path and access to it"


def _one_line(text: str) -> str:
    """What a file or argument says may hold line ends; a refusal does not."""
    return " ".join(text.splitlines())
