"""faultline classify: the cause that a log shows; models of a site's labelled text."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from analytics.errors import AnalysisError
from app.cli import options, output

if TYPE_CHECKING:
    from analytics.failures.text_model import Evaluation
    from app.questions.classification import FileVerdict, TextEvaluation, Trained

HELP = "what a job's log says it failed of; train and evaluate a model of labelled text"
EXAMPLE = (
    "echo 'RuntimeError: CUDA error: uncorrectable ECC error encountered' | faultline classify -"
)
_USAGE = """%(prog)s FILE [--store DIR]
       %(prog)s train FILE --text COL... --label COL [--time COL] [--store DIR]
       %(prog)s evaluate --train A --test B --text COL... --label COL
                [--retrain month --time COL]"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A log, or what to do with labelled text."""
    parser.usage = _USAGE
    parser.add_argument(
        "what",
        metavar="FILE",
        help="a log, - is standard input; or train, or evaluate (a log of such a name: ./train)",
    )
    rest = parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    rest.required = False  # a refusal names FILE alone
    _add_shared(parser)
    parser.set_defaults(parser_type=type(parser))


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
    return act(parser.parse_args(arguments.rest, argparse.Namespace(what=arguments.what)))


def _add_shared(parser: argparse.ArgumentParser) -> None:
    options.add_store(parser)
    options.add_format(parser)


def _file_arguments(parser: argparse.ArgumentParser) -> None:
    """Nothing stands behind the name of a log but options."""


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


def _classify(arguments: argparse.Namespace) -> int:
    from app import questions

    found = questions.log_file_verdict(arguments.what, arguments.store)
    if found.n_read < found.n_lines:
        output.notice(f"{arguments.what}: read {found.n_read:,} of {found.n_lines:,} lines")
    _print(_verdict_record(found), output.chosen(arguments.format))
    return 0


def _train(arguments: argparse.Namespace) -> int:
    from app import questions

    root = _store_to_write(arguments.store)
    trained = questions.train_on_file(
        arguments.file,
        arguments.text,
        arguments.label,
        time=arguments.time,
        root=root,
        conf_level=arguments.conf_level,
        seed=arguments.seed,
    )
    for text in trained.notes:
        output.notice(text)
    if root is None:
        output.notice(f"the model was not stored: {arguments.store} is no folder, name one")
    if trained.labels_without_cause:
        output.notice(
            "labels that mean no cause: " + ", ".join(trained.labels_without_cause)
            + ": `classify FILE` does not say them; [taxonomy.labels.site] in site.toml maps them"
        )  # fmt: skip
    _print(_trained_record(trained), output.chosen(arguments.format))
    return 0


def _evaluate(arguments: argparse.Namespace) -> int:
    from app import questions

    if arguments.retrain and arguments.time is None:
        raise AnalysisError("--retrain month needs --time: name the column of the time")
    asked = (arguments.train, arguments.test, arguments.text, arguments.label)
    estimate = {"conf_level": arguments.conf_level, "seed": arguments.seed}
    found = questions.evaluate_on_file(*asked, time=arguments.time, **estimate)
    record = _evaluation_record(found)
    for text in found.notes:
        output.notice(text)
    if arguments.retrain:
        monthly = questions.evaluate_monthly(*asked, time=arguments.time, **estimate)
        record["retrained"] = _evaluation_record(monthly) | {"trainings": monthly.trainings}
        for text in monthly.notes:
            output.notice(f"retrained: {text}")
    _print(record, output.chosen(arguments.format))
    return 0


def _store_to_write(store: Path) -> Path | None:
    """The store that was named or is there; a default that is not there is not made."""
    named = store != Path("./store") or os.environ.get("FAULTLINE_STORE")
    return store if named or store.is_dir() else None


def _verdict_record(found: FileVerdict) -> output.Row:
    verdict = found.verdict
    return {
        "cause": verdict.cause,
        "labels": found.labels,
        "domain": verdict.domain,
        "confidence": verdict.confidence,
        "method": verdict.method,
        "symptom": verdict.symptom,
        "evidence": list(verdict.evidence),
        "alternatives": list(verdict.alternatives),
        "n_lines": found.n_lines,
    }


def _trained_record(trained: Trained) -> output.Row:
    checked = trained.cross_validation
    return {
        **_scores(trained.evaluation),
        "n": trained.n,
        "n_judged": trained.evaluation.n,
        "in_time_order": checked.in_time_order,
        "classes": trained.rows_by_label,
        "text": trained.columns,
        "threshold": trained.threshold,
        "target_accuracy": trained.target_accuracy,
        "coverage": checked.covered_ratio,
        "covered_accuracy": checked.covered_accuracy,
        "training_sha256": trained.training_sha256,
        "model": None if trained.path is None else str(trained.path),
        "labels_without_cause": trained.labels_without_cause,
    }


def _evaluation_record(found: TextEvaluation) -> output.Row:
    return {
        **_scores(found.evaluation),
        "n_train": found.n_train,
        "abstaining": found.abstaining,
    }


def _scores(found: Evaluation) -> output.Row:
    """The keys of the contract."""
    return {
        "accuracy": found.accuracy,
        "macro_f1": found.macro_f1,
        "n": found.n,
        "per_class": list(found.per_class),
        "at_coverage": list(found.at_coverage),
    }


def _print(record: output.Row, form: str) -> None:
    """The record; for people lists of records stand as tables below it."""
    if form != "table":
        output.print_record(record, form)
        return
    tables = {
        key: rows
        for key, value in record.items()
        if (rows := output.plain(value)) and isinstance(rows, list) and isinstance(rows[0], dict)
    }
    nested = {key: value for key, value in record.items() if key == "retrained"}
    plain = {key: value for key, value in record.items() if key not in tables and key not in nested}
    output.print_record({key: _told(value) for key, value in plain.items()}, form)
    for name, rows in tables.items():
        print(f"\n{name}")
        output.print_table(list(rows[0]), [[_cell(one) for one in row.values()] for row in rows])
    for name, inner in nested.items():
        print(f"\n{name}")
        _print(inner, form)


def _told(value: object) -> object:
    """A dataclass as its fields."""
    found = value if hasattr(value, "conf_level") else output.plain(value)
    return {key: _cell(one) for key, one in found.items()} if isinstance(found, dict) else found


def _cell(value: object) -> object:
    """Of an estimate the value."""
    return value["value"] if isinstance(value, dict) and "value" in value else value
