"""Columns of training_metrics as SQL over the columns of a file of logged steps."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from data.ingest.formats.text_columns import instant_sql, literal, one_of
from data.ingest.readers.training.checksums import LONGEST, is_checksum
from data.ingest.readers.training.quantities import (
    DURATIONS,
    LOADED,
    NO_EVENT,
    NUMBERS,
    SAVED,
    Column,
)
from data.ingest.rows import zone

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from data.ingest.reader import Options

NO_VALUE = ("", "none", "null", "na", "n/a", "-", "<na>")
EARLIEST_S, LATEST_S = 946_684_800, 4_102_444_800
"""2000 to 2100: seconds, milliseconds, microseconds and nanoseconds of it do not overlap."""
EPOCH_UNITS = ((1, 1e6), (1e3, 1e3), (1e6, 1.0), (1e9, 1e-3))
"""Units in a second, microseconds in a unit."""
LARGEST_RANK = 2**31 - 1
_CHECKSUM = "([A-Za-z0-9_]+:|0[xX])?[0-9A-Fa-f]{6,128}"
"""Text that is kept whatever its series is called: hexadecimal digits, with what made them."""
_ZONE = "(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
_LOCAL = "[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}[ T][0-9]{1,2}:[0-9]{2}.*"


class Fields:
    """Expressions over the columns "0", "1", ... of a file.

    Parameters
    ----------
    typed : Collection of int
        Places of the columns that hold DOUBLE; the others hold text.
    timeless : bool
        Whether single records may state no time where others do.
    """

    def __init__(
        self,
        header: Sequence[str],
        known: Mapping[str, Column],
        options: Options,
        *,
        typed: Collection[int] = (),
        timeless: bool = False,
    ) -> None:
        self._header, self._known, self._options, self._typed = header, known, options, typed
        self._may_lack_time = timeless or "logged_at" not in known
        for name in filter(None, (options.timezone, *options.zones.values())):
            zone(name)

    def cleaned(self) -> str:
        """The columns without blanks and quotes; a sign for no value is NULL."""
        words = ", ".join(map(literal, NO_VALUE))
        return ", ".join(
            f'"{i}"'
            if i in self._typed
            else f"""CASE WHEN lower(trim("{i}", ' "\t')) IN ({words}) THEN NULL
                ELSE trim("{i}", ' "\t') END AS "{i}\""""
            for i in range(len(self._header))
        )

    def parsed(self) -> str:
        """Columns of training_metrics under their names, NULL where the text cannot be read."""
        numbers = {name: _number(self._text(name)) for name in ("step", *NUMBERS, "rank")}
        durations = {}
        for name, column in DURATIONS.items():
            number, factor = _number(self._text(name)), self._known.get(name, Column(-1)).factor
            durations[column] = f"CASE WHEN NOT isnan({number}) THEN {number} * {factor!r} END"
        event = self._text("checkpoint_event")
        found = {
            "cluster": self._cluster(),
            "job_id": self._stated("job_id", self._options.job_id),
            "run_id": self._stated("run_id", self._options.run_id),
            "event_text": f"trim(regexp_replace(lower({event}), '[^a-z0-9]+', '_', 'g'), '_')",
            "series": self._series(),
            **numbers,
            **durations,
        }
        return ", ".join(f'{value} AS "{name}"' for name, value in found.items())

    def timed(self) -> str:
        """Column logged_at, NULL where there is no time that can be read."""
        column = self._known.get("logged_at")
        if column is None:
            return "CAST(NULL AS TIMESTAMPTZ) AS logged_at, false AS is_local"
        text = self._text("logged_at")
        epoch = " ".join(
            f"WHEN number >= {EARLIEST_S * units} AND number < {LATEST_S * units} "
            f"THEN make_timestamptz(CAST(round(number * {micros!r}) AS BIGINT))"
            for units, micros in EPOCH_UNITS
        ).replace("number", f"TRY_CAST({text} AS DOUBLE)")
        if column.place in self._typed:
            return f"CASE {epoch} END AS logged_at, false AS is_local"
        plain = f"replace(regexp_replace({text}, ' ?(UTC|GMT)$', 'Z'), ',', '.')"
        plain = f"regexp_replace({plain}, '^([0-9]{{4}})/([0-9]{{1,2}})/', '\\1-\\2-')"
        zoned = f"regexp_replace({plain}, '([+-][0-9]{{2}})([0-9]{{2}})$', '\\1:\\2')"
        return f"""CASE WHEN TRY_CAST({text} AS DOUBLE) IS NOT NULL THEN CASE {epoch} END
            WHEN NOT regexp_full_match({plain}, {literal(_LOCAL)}) THEN NULL
            WHEN {_is_zoned(plain)} THEN TRY_CAST({zoned} AS TIMESTAMPTZ)
            ELSE {instant_sql(plain, self._options, "cluster")} END AS logged_at,
            TRY_CAST({text} AS DOUBLE) IS NULL AND NOT {_is_zoned(plain)} AS is_local"""

    def event(self) -> str:
        """Columns checkpoint_event and is_other, which tells an event of another kind."""
        known = sorted(SAVED | LOADED | NO_EVENT)
        return f"""CASE WHEN {one_of("event_text", sorted(SAVED))} THEN 'saved'
              WHEN {one_of("event_text", sorted(LOADED))} THEN 'loaded' END AS checkpoint_event,
            event_text IS NOT NULL AND NOT {one_of("event_text", known)} AS is_other"""

    def skip(self) -> str:
        """Why a record is not of interest, NULL where it is."""
        texts = [i for i, name in enumerate(self._header) if name and i not in self._typed]
        again = " AND ".join(f'"{i}" = {literal(self._header[i])}' for i in texts)
        header = "false" if self._typed else again  # the name of a column is no DOUBLE
        event = self._known.get("checkpoint_event")
        free = "is_other" if event is not None and event.free else "false"
        return f"CASE WHEN {header} THEN 'header' WHEN {free} THEN 'other_event' END"

    def reason(self) -> str:
        """Why a record cannot be read, NULL where it can."""
        cases = " ".join(f"WHEN {test} THEN {literal(reason)}" for test, reason in self.tests())
        return f"CASE {cases} END"

    def tests(self) -> list[tuple[str, str]]:
        """What a record that cannot be read fulfils, each with its reason."""
        no_time = "false" if self._may_lack_time else f"{self._text('logged_at')} IS NULL"
        stated = f"{self._text('logged_at')} IS NOT NULL"
        tests = [
            (f"{self._text('step')} IS NULL AND checkpoint_event IS NULL", "no step"),
            (f"{self._text('step')} IS NOT NULL AND NOT {_is_whole('step')}",
             "step is no whole number"),
            (no_time, "no time"),
            (f"{stated} AND logged_at IS NULL", "time cannot be read"),
            ("job_id IS NULL AND run_id IS NULL", "no run_id or job_id"),
            (f"{self._text('rank')} IS NOT NULL AND NOT {_is_whole('rank')}",
             "rank is no whole number"),
            (f"abs(rank) > {LARGEST_RANK}", "rank is too large"),
            ("is_other", "checkpoint_event is neither saved nor loaded"),
        ]  # fmt: skip
        tests += [
            (f"{self._text(name)} IS NOT NULL AND {name} IS NULL", f"{name} is no number")
            for name in NUMBERS
            if name in self._known and self._known[name].place not in self._typed
        ]
        for name, column in DURATIONS.items():
            number = _number(self._text(name))
            bad = f"coalesce({number} < 0 OR isinf({number}), true)"
            tests.append((f"{self._text(name)} IS NOT NULL AND {bad}", f"{column} is no duration"))
        return tests

    def _text(self, quantity: str) -> str:
        column = self._known.get(quantity)
        return "CAST(NULL AS VARCHAR)" if column is None else f'"{column.place}"'

    def _stated(self, quantity: str, said: str | None) -> str:
        """A name in the file, else what the caller said."""
        return f"coalesce({self._text(quantity)}, {'NULL' if said is None else literal(said)})"

    def _cluster(self) -> str:
        if self._options.cluster is not None:
            return literal(self._options.cluster)
        return f"coalesce({self._text('cluster')}, {literal(self._options.default_cluster)})"

    def _series(self) -> str:
        """JSON object of the further columns that hold a number, or a checksum as text.

        What is a checksum by its name is text even where it looks like a number: two that differ in
        their last digits are one floating-point number.
        """
        taken = {column.place for column in self._known.values()}
        pairs = []
        for i, name in enumerate(self._header):
            if name and i not in taken:
                key, number = literal(f"{json.dumps(name)}: "), _number(f'"{i}"')
                text = f'CAST("{i}" AS VARCHAR)'
                if is_checksum(name):
                    short = f"CASE WHEN length({text}) > {LONGEST} THEN 'md5:' || md5({text})"
                    pairs.append(f"{key} || to_json({short} ELSE {text} END)")
                    continue
                looks_so = f"regexp_full_match({text}, {literal(_CHECKSUM)})"
                pairs.append(
                    f"""CASE WHEN isfinite({number}) THEN {key} || {number}
                        WHEN {number} IS NOT NULL THEN {key} || '"' || {number} || '"'
                        WHEN {looks_so} THEN {key} || '"' || {text} || '"' END"""
                )
        return (
            f"'{{' || nullif(concat_ws(', ', {', '.join(pairs)}), '') || '}}'" if pairs else "NULL"
        )


def _is_zoned(text: str) -> str:
    return f"regexp_matches({text}, {literal(_ZONE)})"


def _is_whole(name: str) -> str:
    return f"coalesce({name} = floor({name}) AND abs({name}) < 9e15, false)"


def _number(text: str) -> str:
    return f"TRY_CAST({text} AS DOUBLE)"
