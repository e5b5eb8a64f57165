"""What can be asked of files that a person sent and nobody keeps, each in a process of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.actions.parcel import Parcel
from app.actions.reading import Reading
from data.audit import login, noted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import BinaryIO

    from app.answers.nodes.links import Examined as ExaminedLinks
    from app.answers.nodes.machines import Examined as ExaminedMachines
    from app.answers.nodes.validation import Judged
    from data.ingest.readers.tables.mapping_sample import Preview, Sample
    from data.limits import Limits


@dataclass(frozen=True)
class Question:
    """A question, as it is asked in the process, and what its answer is made of."""

    ask: Callable[..., Any]
    """Of paths (None of a file that was not given), limits, and what was stated."""
    parcel: Callable[[], Parcel]
    command: str
    """What reads such files without the limits of an upload."""
    audited: bool = True
    """Whether the audit says it; not where it does of an earlier question about the file."""


def _links(files: Sequence[str | None], _: Limits, *, least_ratio: float) -> ExaminedLinks:
    from app.answers.nodes import links

    delays, switches = files
    return links.examined(str(delays), switches, least_ratio=least_ratio)


def _links_parcel() -> Parcel:
    from analytics.estimate import Estimate
    from analytics.nodes.links.verdict import Finding, SlowLinks
    from app.answers.nodes.links import Examined

    return Parcel(Examined, SlowLinks, Finding, Estimate)


def _validation(files: Sequence[str], _: Limits, *, least_similarity: float) -> Judged:
    from app.answers.nodes import validation

    return validation.judged(files, least_similarity=least_similarity)


def _validation_parcel() -> Parcel:
    from analytics.estimate import Estimate
    from analytics.nodes.validation import Criterion, Regression, Regressions
    from app.answers.nodes.validation import Judged

    return Parcel(Judged, Regressions, Regression, Criterion, Estimate)


def _machines(files: Sequence[str], _: Limits, *, roles: str) -> ExaminedMachines:
    from app.answers.nodes import machines

    return machines.examined(files, roles=machines.stated_roles(roles.split()))


def _machines_parcel() -> Parcel:
    from analytics.nodes.machines.detection import (
        Detection,
        Faulty,
        HeatMap,
        Nearest,
        Settings,
        Told,
    )
    from app.answers.nodes.machines import Examined

    return Parcel(Examined, Detection, Faulty, Told, Nearest, HeatMap, Settings)


def _sample(files: Sequence[str], limits: Limits, *, name: str, options: dict[str, Any]) -> Sample:
    from data.ingest import Options
    from data.ingest.readers.tables import mapping_sample

    with Path(files[0]).open("rb") as file:
        return mapping_sample.sample(name, file, Options(**options, limits=limits))


def _states(
    files: Sequence[str],
    limits: Limits,
    *,
    name: str,
    header: Sequence[str],
    column: str,
    options: dict[str, Any],
) -> list[str]:
    from data.ingest import Options
    from data.ingest.readers.tables import mapping_sample

    taken = mapping_sample.Sample(name, tuple(header), Path(files[0]).read_bytes())
    return mapping_sample.foreign_states(taken, column, Options(**options, limits=limits))


def _preview(
    files: Sequence[str],
    limits: Limits,
    *,
    source: str,
    name: str,
    header: Sequence[str],
    toml: str,
    options: dict[str, Any],
) -> Preview:
    from data.ingest import Options
    from data.ingest.readers.tables import mapping_sample

    taken = mapping_sample.Sample(name, tuple(header), Path(files[0]).read_bytes())
    return mapping_sample.preview(source, taken, toml, Options(**options, limits=limits))


def _mapping_parcel() -> Parcel:
    from data.ingest.reader import Rejected
    from data.ingest.readers.tables.mapping_sample import Preview, Sample

    return Parcel(Sample, Preview, Rejected)


QUESTIONS = {
    "links": Question(_links, _links_parcel, "faultline links"),
    "validation": Question(_validation, _validation_parcel, "faultline validate-plan"),
    "machines": Question(_machines, _machines_parcel, "faultline machines"),
    "mapping sample": Question(_sample, _mapping_parcel, "faultline ingest"),
    "mapping states": Question(_states, _mapping_parcel, "faultline ingest", audited=False),
    "mapping preview": Question(_preview, _mapping_parcel, "faultline ingest", audited=False),
}
"""Each question that a page asks of a file, by its name."""


class RunningExamination(Reading[Any]):
    """A question about files, under way; nothing of them is kept but their names in the audit."""

    def __init__(
        self,
        root: Path,
        question: str,
        files: Sequence[tuple[str, BinaryIO] | None],
        said: dict[str, Any],
        *,
        author: str | None = None,
    ) -> None:
        asked = QUESTIONS[question]
        super().__init__(root, question, files, said, parcel=asked.parcel(), command=asked.command)
        self.notice: str | None = None
        """Why the audit does not say it."""
        if asked.audited:
            for each in files:
                if each is not None:
                    detail = {"path": each[0], "source": question}
                    self.notice = noted(root, "upload", detail, person=author or login())
