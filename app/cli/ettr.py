"""faultline ettr: expected ETTR of a job, and the checkpoint interval that suits it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analytics.errors import AnalysisError
from app.cli import options, output
from app.figures.numbers import duration, number

if TYPE_CHECKING:
    import argparse

    from analytics.efficiency.expected_ettr import ExpectedEttr

HELP = "ETTR, productive time over wall-clock: expected of a job from its failure rate"
EXAMPLE = (
    "faultline ettr --gpus 12000 --rate-per-1000-node-days 6.5 --restart-min 5 --write-min 5 "
    "--simulate 100000"
)
NEEDED = ("rate_per_1000_node_days", "restart_min")
"""Options without which nothing can be expected of a job."""
PLAIN = ("v1", "v2", "full", "exact", "exact_of_run", "interval_min", "daly_young_interval_min",
         "optimal_interval_min", "optimal_interval_first_order_min", "exact_at_optimum",
         "mttf_hours")  # fmt: skip
"""Plain numbers among the keys of the JSON."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A job, its failure rate and what failures cost."""
    parser.add_argument("--gpus", type=int, metavar="N", required=True, help="of the job")
    numbers = (
        ("--rate-per-1000-node-days", "R", None, "failures per 1,000 node-days"),
        ("--restart-min", "U", None, "minutes from a start to the first step (u0)"),
        ("--gpus-per-node", "N", 8.0, "GPUs of a node (default 8)"),
        ("--write-min", "W", 0.0, "minutes that a checkpoint stops training (default 0)"),
        ("--interval-min", "D", None, "minutes between checkpoints (default Daly-Young's)"),
        ("--queue-min", "Q", 0.0, "minutes queued at first and after a failure (default 0)"),
        ("--run-days", "R", None, "days of training that the run needs (default a long run)"),
    )
    for name, metavar, default, text in numbers:
        parser.add_argument(name, type=float, metavar=metavar, default=default, help=text)
    parser.add_argument(
        "--simulate",
        type=options.whole,
        metavar="N",
        default=0,
        help="also by Monte Carlo: N interruptions, with --run-days N runs (default 0)",
    )
    parser.add_argument(
        "--conf-level", type=float, default=0.90, metavar="P", help="of intervals (default 0.90)"
    )
    parser.add_argument(
        "--seed", type=options.whole, default=0, metavar="N", help="of the simulation (default 0)"
    )
    options.add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Prints what is expected of the job."""
    _print_expected(arguments, output.chosen(arguments.format))
    return 0


def _print_expected(arguments: argparse.Namespace, form: str) -> None:
    """The expected ETTR; reads no store."""
    for name in NEEDED:
        if getattr(arguments, name) is None:
            option = f"--{name.replace('_', '-')}"
            raise AnalysisError(f"{option} must be given with --gpus: see --help for an example")
    from analytics.efficiency.ettr_settings import EttrSettings
    from app import questions

    settings = EttrSettings(
        gpus=arguments.gpus,
        rate_per_1000_node_days=arguments.rate_per_1000_node_days,
        restart_min=arguments.restart_min,
        gpus_per_node=arguments.gpus_per_node,
        write_min=arguments.write_min,
        interval_min=arguments.interval_min,
        queue_min=arguments.queue_min,
        run_days=arguments.run_days,
    )
    found = questions.expected_ettr(
        settings,
        simulations=arguments.simulate,
        seed=arguments.seed,
        conf_level=arguments.conf_level,
    )
    for text in found.notes:
        output.notice(text)
    if form == "json":
        output.print_json(record(found))
    elif form == "csv":
        _print_csv(found)
    else:
        _print_table(found)


def record(found: ExpectedEttr) -> output.Row:
    """The expected ETTR as the JSON keys of the command."""
    simulated = found.simulated
    return {name: getattr(found, name) for name in PLAIN} | {
        "simulated": simulated.ettr if simulated else None,
        "simulated_standard_error": simulated.standard_error if simulated else None,
        "simulated_of": simulated.of if simulated else None,
        "sensitivities": found.sensitivities,
        "settings": found.settings,
        "notes": found.notes,
    }


def _print_csv(found: ExpectedEttr) -> None:
    """A row a quantity; plain numbers have no interval."""
    rows: list[list[Any]] = [[name, getattr(found, name), None, None, None, None] for name in PLAIN]
    if found.simulated is not None:
        ettr = found.simulated.ettr
        rows.append(["simulated", ettr.value, ettr.lower, ettr.upper, ettr.conf_level, ettr.n])
    output.print_csv(["quantity", "value", "lower", "upper", "conf_level", "n"], rows)


def _print_table(found: ExpectedEttr) -> None:
    """The forms, intervals and sensitivities for people."""
    shown: dict[str, Any] = {
        "ETTR, exact (a long run)": found.exact,
        "ETTR, full first order": found.full,
        "ETTR, v2 first order": found.v2,
        "ETTR, v1 first order, writes left out": found.v1,
    }
    if found.exact_of_run is not None:
        shown["ETTR, exact of this run"] = found.exact_of_run
    if found.simulated is not None:
        shown[f"ETTR, simulated {found.simulated.of}"] = found.simulated.ettr
    shown |= {
        "interval of these": _minutes(found.interval_min),
        "Daly-Young interval": _minutes(found.daly_young_interval_min),
        "best interval, exact": _minutes(found.optimal_interval_min),
        "best interval, first order": _minutes(found.optimal_interval_first_order_min),
        "ETTR at the best interval, exact": found.exact_at_optimum,
        "MTTF of the job": duration(found.mttf_hours),
    }
    output.print_record(shown, "table")
    if not found.sensitivities:
        return
    print()
    output.print_table(
        ["1 % more of", "at", "changes the ETTR by (%)"],
        [(slope.parameter, slope.value, slope.elasticity) for slope in found.sensitivities],
    )


def _minutes(interval: float | None) -> str:
    """An interval in minutes; none where none is best."""
    return "none" if interval is None else f"{number(interval)} min"
