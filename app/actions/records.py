"""Records that come into a store: ingested files, the demo."""

from __future__ import annotations

import zoneinfo
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from data.audit import noted
from data.errors import DataError, StoreError
from data.ingest import IngestResult, Options, ingest
from data.ingest.readers import known_readers
from data.publish import writer
from data.site import load_site
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from data.ingest.reader import Reader


def sources() -> Mapping[str, Reader]:
    """The sources that can be ingested, by name."""
    return known_readers()


def known_options(source: str) -> frozenset[str]:
    """Options that say something to a source, beside those that every source knows."""
    reader = known_readers().get(source)  # none of `auto`
    return frozenset(reader.options if reader else ())


def presets(source: str) -> Mapping[str, Mapping[str, Any]]:
    """Name of each preset of a source -> what it states: columns, or a mapping of them."""
    reader = known_readers().get(source)
    return reader.presets() if reader else {}


def stated_by(preset: str, source: str) -> dict[str, Any]:
    """What a preset says of a file: columns of a text without a header, or the mapping of a table.

    Raises
    ------
    DataError
        Where the preset is unknown, or the source is another than the one it is of.
    """
    owners = {name: owner for owner in known_readers() for name in presets(owner)}
    if preset not in owners:
        raise DataError(f"--preset {preset!r} is unknown: choose one of {', '.join(owners)}")
    owner = owners[preset]
    if source != owner:
        raise DataError(
            f"--preset {preset} names columns of {owner}, not of {source}: name {owner}, or omit it"
        )
    return dict(presets(owner)[preset])


def ingest_files(
    root: Path,
    source: str,
    names: Sequence[str],
    options: Options,
    *,
    called: Mapping[str, str] | None = None,
    author: str | None = None,
    wait_s: float = 0.0,
) -> tuple[list[IngestResult], list[str]]:
    """Reads files into the store and publishes once; results, and what could not be read.

    `called` says what people call a file, where that is not its path. Another writer is waited
    for, `wait_s` seconds at most.

    Raises
    ------
    DataError
        Where nothing could be read from any of them, or the source ignores an option that was
        stated: the store is untouched.
    """
    reader = known_readers().get(source)
    if reader is not None and (ignored := reader.ignored(options)):
        raise DataError(f"{'; '.join(ignored)}: leave it out, or name another source")
    site = load_site(root)
    options = replace(
        options,
        default_cluster=site.default_cluster,
        timezones=site.timezones,
        limits=site.limits,
    )
    results: list[IngestResult] = []
    errors: list[str] = []
    with writer(root, wait_s=wait_s) as building:
        _refuse_synthetic(building.synthetic, root)
        for name in names:
            try:
                shown = (called or {}).get(name)
                results.append(ingest(building, source, name, options, called=shown))
            except DataError as error:
                errors.append(str(error))
        if not results:
            raise DataError("; ".join(errors))
        building.publish(options.progress)
    if building.new_names:
        results[-1] = replace(
            results[-1], notices=(*results[-1].notices, *_told_of_names(building.new_names))
        )
    if any("straggler_traces" in result.tables for result in results):
        results[-1] = replace(results[-1], notices=(*results[-1].notices, *_unanalysed(root)))
    action = "ingest" if called is None else "upload"
    return [_audited(root, action, result, author) for result in results], errors


def _audited(root: Path, action: str, result: IngestResult, author: str | None) -> IngestResult:
    """A result that the audit knows, or a notice that it does not: the records are in by now."""
    detail = {"ingest_id": result.ingest_id, "source": result.source, "path": result.path}
    missed = noted(root, action, detail, person=author)
    return result if missed is None else replace(result, notices=(*result.notices, missed))


def _unanalysed(root: Path) -> list[str]:
    """Sentences about traces of which no slowdown is known."""
    from data.queries.stragglers import unanalysed

    with closing(Store.open(root)) as store:
        return [
            f"{name} is stored, but cannot be analysed: {why}" for name, why in unanalysed(store)
        ]


def _told_of_names(found: Sequence[tuple[str, str, str, str]]) -> tuple[str, ...]:
    """Sentences about names of nodes that these records brought."""
    from app.answers.fleet import names

    return tuple(names.told([each[1:] for each in found]))


def _refuse_synthetic(synthetic: bool, root: Path) -> None:
    """Real data never goes into a demo store."""
    if synthetic:
        raise StoreError(
            f"{root}: holds the synthetic demo, which never mixes with real data: "
            "pass another --store"
        )


def checked_zone(name: str | None) -> str | None:
    """An IANA zone by name; refuses one that does not exist."""
    if name is not None and name not in zoneinfo.available_timezones():
        raise DataError(f"time zone {name!r} is unknown: use an IANA name, e.g. Europe/Berlin")
    return name
