"""faultline classify: what a job's log says it failed of; train and evaluate a model of labelled
text.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from analytics.errors import AnalysisError
from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    from app.answers.content import Answer

EXAMPLE = (
    "echo 'RuntimeError: CUDA error: uncorrectable ECC error encountered' | faultline classify -"
)
_USAGE = """%(prog)s FILE [--store DIR] [--ask-model [show]]
       %(prog)s train FILE --text COL... --label COL [--time COL] [--store DIR]
       %(prog)s evaluate --train A --test B --text COL... --label COL
                [--retrain month --time COL]"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A log, or what to do with labelled text."""
    parser.usage = _USAGE
    parser.add_argument(
        "what",
        metavar="FILE",
        help="a log, - is standard input (`classify FILE --help`: its options); or train, or "
        "evaluate (a log of such a name: ./train)",
    )
    rest = parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    rest.required = False  # a refusal names FILE alone
    _add_shared(parser)
    parser.set_defaults(parser_type=type(parser), reads_rest=True)


def run(arguments: argparse.Namespace) -> int:
    """Reads the arguments behind the first word as that word asks, and answers."""
    actions = {"train": (_train_arguments, _train), "evaluate": (_evaluate_arguments, _evaluate)}
    add, act = actions.get(arguments.what, (_file_arguments, _classify))
    name = "" if act is _classify else f" {arguments.what}"
    parser = arguments.parser_type(prog=f"faultline classify{name}")
    add(parser)
    _add_shared(parser)
    parser.set_defaults(
        **{key: value for key, value in vars(arguments).items() if key in ("store", "format")}
    )
    given = parser.parse_args(arguments.rest, argparse.Namespace(what=arguments.what))
    terminal.write(act(given), given.format)
    return 0


def _add_shared(parser: argparse.ArgumentParser) -> None:
    options.add(parser, "store", "format")


def _file_arguments(parser: argparse.ArgumentParser) -> None:
    """Whether the site's language model is asked, too."""
    parser.add_argument(
        "--ask-model",
        nargs="?",
        choices=("send", "show"),
        const="send",
        help="where the log says no cause, ask the site's language model, whose answer counts "
        "nowhere; show: print what would be sent, and send nothing",
    )


def _text_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--text",
        nargs="+",
        action="extend",
        required=True,
        metavar="COL",
        help="columns of text; digits in them count as one sign",
    )
    parser.add_argument("--label", required=True, metavar="COL", help="column of the answer")
    parser.add_argument(
        "--time", metavar="COL", help="column of the time: then calibration looks forward only"
    )
    options.add_estimate(parser)


def _train_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="CSV or Parquet; - is standard input")
    _text_arguments(parser)


def _evaluate_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--train", required=True, metavar="A", help="CSV or Parquet to learn from")
    parser.add_argument("--test", required=True, metavar="B", help="CSV or Parquet to be judged by")
    _text_arguments(parser)
    parser.add_argument(
        "--retrain",
        choices=("month",),
        help="beside it, a model trained anew as each month begins; needs --time",
    )


def _classify(arguments: argparse.Namespace) -> Answer:
    from app.answers.failures import labelled_text

    if arguments.ask_model is None:
        return labelled_text.of_log(arguments.what, arguments.store)
    from app.actions import third_opinion

    ask = partial(third_opinion.ask, arguments.store, send=arguments.ask_model == "send")
    return labelled_text.of_log(arguments.what, arguments.store, ask)


def _train(arguments: argparse.Namespace) -> Answer:
    from app.answers.failures import labelled_text
    from data.audit import noted

    root = _store_to_write(arguments.store)
    answer = labelled_text.of_training(
        arguments.file,
        arguments.text,
        arguments.label,
        time=arguments.time,
        root=root,
        conf_level=arguments.conf_level,
        seed=arguments.seed,
    )
    if root is None:
        terminal.notice(f"the model was not stored: {arguments.store} is no folder, name one")
    untold = None if root is None else noted(root, "train", {"file": arguments.file})
    if untold is not None:
        terminal.notice(untold)
    return answer


def _evaluate(arguments: argparse.Namespace) -> Answer:
    from app.answers.failures import labelled_text

    if arguments.retrain and arguments.time is None:
        raise AnalysisError("--retrain month needs --time: name the column of the time")
    names = [field.name for field in fields(labelled_text.LabelledFiles)]
    files = labelled_text.LabelledFiles(**{name: getattr(arguments, name) for name in names})
    tested = labelled_text.evaluated(files)
    monthly = labelled_text.evaluated_monthly(files) if arguments.retrain else None
    return labelled_text.of_evaluation(tested, monthly)


def _store_to_write(store: Path) -> Path | None:
    """The store that was named or is there; a default that is not there is not made."""
    named = store != Path("./store") or os.environ.get("FAULTLINE_STORE")
    return store if named or store.is_dir() else None
