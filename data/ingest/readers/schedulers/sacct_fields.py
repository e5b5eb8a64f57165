"""Columns of sacct: what their values look like, and what they become in the table jobs."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from data.ingest.formats.delimited import LINE_BREAK, Doubtful
from data.limits import DEFAULTS, Limits
from data.tables.jobs import STATES

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

NO_TIME = ("", "Unknown", "None", "N/A", "NONE", "unknown")
NO_TEXT = ("", "None", "(null)", "Unknown", "N/A")

JOB_ID = r"\d+(?:_(?:\d+|\[[^\]|]*\]?\S*))?(?:\+\d+)?(?:\.\S+)?"
TIME = (
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?|\d{9,11}"
    r"|Unknown|None|NONE|N/A|unknown|"
)
DURATION = r"(?:\d+-)?(?:\d+:)?\d+:\d\d(?:\.\d+)?"
WORD = r"(?:[^\s!-/:-@\[-^`{-~]\S*)?"
TRES = r"(?:[\w/.:-]+=[^,=|\s]+)?(?:,[\w/.:-]+=[^,=|\s]+)*"

FIGURES = {
    "Submit": "how long jobs waited stays unknown, and so the ETTR of their runs",
    "Start": "when jobs ran stays unknown: no running time, rates, MTTF or ledger",
    "End": "when jobs ended stays unknown: no running time, rates, MTTF or ledger",
    "NNodes": "how many nodes jobs held stays unknown: no rates per node-day",
    "AllocTRES": "the GPUs of jobs stay unknown: no GPU-hours, ETTR or ledger, and rates are per "
    "node-day",
    "NodeList": "the nodes of jobs stay unknown: no failures by node, and what nodes, kernels and "
    "health checks say counts in no verdict",
    "ExitCode": "signals that ended jobs stay unknown: only logs tell a crash",
    "Reason": "the scheduler's reasons stay unknown: verdicts rest on other evidence alone",
    "SubmitLine": "which nodes jobs excluded stays unknown, and the command that ran",
    "User": "whose jobs they are stays unknown: fewer of them are joined to runs",
    "Account": "accounts stay unknown: no figures by account",
    "Partition": "partitions stay unknown: no figures by partition",
}
"""Column of sacct -> what stays unknown of an export without it."""
_SAME = {"nnodes": "allocnodes"}
"""Column -> another one that says the same."""

CHECKS = {
    "jobid": JOB_ID,
    "jobidraw": r"\d+(?:\.\S+)?|",
    "state": f"(?:{'|'.join(sorted(STATES))})\\+?(?: by \\S+)?",
    "account": WORD,
    "user": WORD,
    "cluster": WORD,
    "partition": WORD,
    "qos": WORD,
    "submit": TIME,
    "eligible": TIME,
    "start": TIME,
    "end": TIME,
    "exitcode": r"\d+:\d+|",
    "derivedexitcode": r"\d+:\d+|",
    "elapsed": DURATION + "|",
    "elapsedraw": r"\d+|",
    "cputime": DURATION + "|",
    "cputimeraw": r"\d+|",
    "suspended": DURATION + "|",
    "totalcpu": DURATION + "|",
    "nnodes": r"[\d.]+[KMG]?|",
    "ncpus": r"[\d.]+[KMG]?|",
    "allocnodes": r"[\d.]+[KMG]?|",
    "alloccpus": r"[\d.]+[KMG]?|",
    "reqcpus": r"[\d.]+[KMG]?|",
    "restarts": r"\d+|",
    "priority": r"\d+|",
    "uid": r"\d+|",
    "gid": r"\d+|",
    "timelimitraw": r"\d+|UNLIMITED|Partition_Limit|",
    "timelimit": DURATION + "|UNLIMITED|Partition_Limit|INVALID|",
    "alloctres": TRES,
    "reqtres": TRES,
    "workdir": r"(?:/.*)?",
    "nodelist": r"(?:[^\s|\[\],]|\[[\d,-]+\]|,)*|None assigned",
}
"""What the value of a column looks like; a torn record is put together so that all these hold."""

TEXTS = {
    "job_id_raw": "jobidraw", "sluid": "sluid", "original_sluid": "originalsluid", "user": "user",
    "account": "account", "partition": "partition", "qos": "qos", "name": "jobname",
    "flags": "flags", "reason": "reason", "failed_node": "failednode", "submit_line": "submitline",
}  # fmt: skip
"""Column of jobs -> column of sacct that it takes over; placeholders for nothing become NULL."""
GPUS = """CASE WHEN COLUMN = '' THEN NULL WHEN NOT contains(COLUMN, 'gres/gpu') THEN 0
    ELSE coalesce(TRY_CAST(regexp_extract(substr(COLUMN, instr(COLUMN, 'gres/gpu='), 24),
        '^gres/gpu=([0-9]+)', 1) AS INTEGER),
      TRY_CAST(list_sum(list_transform(regexp_extract_all(COLUMN, 'gres/gpu:[^=,]+=([0-9]+)', 1),
        lambda n: TRY_CAST(n AS INTEGER))) AS INTEGER), 0) END"""
"""GPUs allocated: the untyped gres/gpu, else the sum of typed ones; none listed is 0."""
NODES = "CASE WHEN COLUMN NOT IN ('', 'None assigned', '(null)') THEN COLUMN END"
EXCLUDED = r"""CASE WHEN contains(COLUMN, '--exclude') OR contains(COLUMN, ' -x') THEN nullif(
    regexp_extract(COLUMN, '(?:--exclude[= ]|\s-x[= ]?)\s*(\S+)', 1), '') END"""
"""Hosts after --exclude or -x on the command line."""

PRESETS = {
    "xdmod": (
        "jobid", "jobidraw", "cluster", "partition", "qos", "account", "group", "gid", "user",
        "uid", "submit", "eligible", "start", "end", "elapsed", "exitcode", "state", "nnodes",
        "ncpus", "reqcpus", "reqmem", "reqtres", "alloctres", "timelimit", "nodelist", "jobname",
    ),
}  # fmt: skip
"""Name of a tool -> columns of the text without a header that it has sacct write."""

FREE_TEXT = (
    "submitline", "jobname", "comment", "admincomment", "systemcomment", "extra", "reason",
    "reservation", "wckey", "constraints", "container", "stdout", "stderr", "stdin",
)  # fmt: skip
"""Columns in which a delimiter or line break may stand, likeliest first."""

RUNNING_ON = frozenset(FREE_TEXT[:6])
"""Columns whose text, where they are last, may go on in the next line."""

_WITH_COMMAS = frozenset({"jobid", "alloctres", "reqtres", "nodelist"})
"""Columns in whose values a comma is at home."""

_TELLING = frozenset(
    {"jobid", "jobidraw", "state", "submit", "eligible", "start", "end", "exitcode",
     "derivedexitcode", "elapsed", "timelimit", "alloctres", "reqtres", "workdir"}
)  # fmt: skip
"""Columns whose values are seldom met in a free text."""

_FILLED = _TELLING | {"nnodes", "ncpus", "nodelist", "account", "user", "partition", "cluster"}
"""Columns that are seldom empty."""

_MAX_SURPLUS = 5000
_MAX_SHARED_OUT = 1_000_000
"""Surplus parts of all records of one file that are given to their texts, about ten seconds."""
_CACHED_CHARACTERS = 100_000
"""Of a text that is kept with its fields: it is asked for several times."""
_MAX_COMMAS = 64
_EMPTY_COST = 3
"""Cost of an empty value where there is mostly one."""


def missing(columns: Collection[str]) -> list[str]:
    """What an export with these columns, in lower case, lacks: a sentence a column."""
    return [
        f"no column {name}: {figures}"
        for name, figures in FIGURES.items()
        if not {name.lower(), _SAME.get(name.lower())}.intersection(columns)
    ]


class Shape:
    """What records of certain columns look like; finds their fields in torn ones."""

    def __init__(self, columns: Sequence[str], delimiter: str, limits: Limits = DEFAULTS) -> None:
        self._delimiter, self._n, self._limits = delimiter, len(columns), limits
        self._n_shared_out = 0
        self._checks = [
            re.compile(f"(?:{CHECKS[name]})\\Z", re.ASCII) if name in CHECKS else None
            for name in columns
        ]
        self._texts = {
            columns.index(name): 1 + rank / 100
            for rank, name in enumerate(FREE_TEXT)
            if name in columns
        }
        """Index of a free text -> cost of giving it more than one part."""
        spread = _WITH_COMMAS if delimiter == "," else frozenset()
        self._spread = {index for index, name in enumerate(columns) if name in spread}
        self._telling = {index for index, name in enumerate(columns) if name in _TELLING}
        self._filled = {index for index, name in enumerate(columns) if name in _FILLED}
        self._n_sure = min(self._texts.keys() | self._spread, default=self._n)
        """Columns before the first in which a delimiter may stand."""
        self.open_ended = columns[-1] in RUNNING_ON
        self._remembered = lru_cache(64)(self._resolved)

    def resolve(self, text: str) -> list[str] | str:
        """The fields of a record, else the reason why the text is none."""
        if self._has_too_many(text):
            return self._limits.fields_reason
        kept = len(text) <= _CACHED_CHARACTERS
        return self._remembered(text) if kept else self._resolved(text)

    def _has_too_many(self, text: str) -> bool:
        """Whether a text has more fields than any record may have."""
        return text.count(self._delimiter) >= self._limits.fields

    def _resolved(self, text: str) -> list[str] | str:
        """The fields of a record, else the reason why the text is none."""
        parts = text.split(self._delimiter)
        surplus = len(parts) - self._n
        if surplus < 0:
            return "too few fields"
        if surplus == 0:
            if self._fit(parts):
                return self._weighed(parts)
            if LINE_BREAK in text:
                return "fields do not fit their columns"
            return Doubtful(parts, 1 if self._mostly_fit(parts) else 2)
        self._n_shared_out += surplus
        tried = surplus <= _MAX_SURPLUS and self._n_shared_out <= _MAX_SHARED_OUT
        fields = self._shared_out(parts, surplus) if tried else None
        return "too many fields" if fields is None else self._weighed(fields)

    def _weighed(self, fields: list[str]) -> list[str]:
        """The fields, as doubtful ones where something is empty that seldom is."""
        empty = any(not fields[index] for index in self._filled)
        return Doubtful(fields, 1) if empty else fields

    def begins(self, text: str) -> bool | None:
        """Whether a line is the beginning of a record: None unknown, False impossible."""
        if self._has_too_many(text):
            return False
        fields = text.split(self._delimiter)
        if len(fields) == 1:
            return self._is_cut_id(text)
        if self._is_header(text):
            return True
        complete = fields[: min(len(fields) - 1, self._n)]
        sure = complete[: self._n_sure]
        if not self._fit(sure):
            return False
        if not fields[0]:
            return None
        if self._fit(complete) and self._tells(complete):
            return True
        if self._tells(sure):
            return None if self._is_tail(fields) else True
        found = self.resolve(text)
        sound = isinstance(found, list) and not (isinstance(found, Doubtful) and found.cost > 1)
        return sound or None

    def _is_header(self, text: str) -> bool:
        """Whether a line is the header of another output."""
        line = text.lower()
        names = line.split(self._delimiter) if "jobid" in line and "state" in line else []
        return {"jobid", "state"} <= {name.strip() for name in names}

    def ends(self, text: str) -> bool:
        """Whether a line cannot go on with a record that is complete.

        Only a text in the last column goes on, and not with the end of another record.
        """
        may_go_on = self.open_ended and not self._has_too_many(text)
        return not may_go_on or self._is_tail(text.split(self._delimiter))

    def _is_tail(self, fields: Sequence[str]) -> bool:
        """Whether the last of a record's fields stand in a line, the first one in part."""
        first = self._n - len(fields) + 1
        return first > 0 and self._fit(fields[1:], first) and self._tells(fields[1:], first)

    def _is_cut_id(self, text: str) -> bool | None:
        """Whether a line without any delimiter is what is left of a job id."""
        check = self._checks[0]
        if check is None or 0 not in self._telling:
            return None
        return bool(check.match(text))

    def _fit(self, fields: Sequence[str], first: int = 0) -> bool:
        """Whether all fields may stand in their columns, the first one in column `first`."""
        return all(self._fits(index, field) for index, field in enumerate(fields, first))

    def _fits(self, index: int, field: str) -> bool:
        check = self._checks[index]
        if check is not None:
            return check.match(field) is not None
        return index in self._texts or LINE_BREAK not in field

    def _mostly_fit(self, fields: Sequence[str]) -> bool:
        """Whether a line is rather a record with a wrong value than a part of a torn one."""
        fit = [self._fits(index, fields[index]) for index in self._telling]
        return 2 * sum(fit) > len(fit)

    def _tells(self, fields: Sequence[str], first: int = 0) -> bool:
        """Whether one of the fields is seldom met in a free text."""
        return any(
            index in self._telling and field not in NO_TIME
            for index, field in enumerate(fields, first)
        )

    def _shared_out(self, parts: list[str], surplus: int) -> list[str] | None:
        """The fields where surplus parts belong to free texts: to the fewest and likeliest.

        Column by column, the cheapest way to have used a surplus of 0, 1, 2, ... parts so far.
        """
        costs: list[float] = [0.0, *[math.inf] * surplus]
        steps: list[list[int]] = []
        for index in range(self._n):
            advance = self._text_taken if index in self._texts else self._value_taken
            costs, step = advance(costs, index, parts)
            steps.append(step)
        if math.isinf(costs[surplus]):
            return None
        fields: list[str] = []
        for index in reversed(range(self._n)):
            before = steps[index][surplus]
            fields.append(self._delimiter.join(parts[index + before : index + surplus + 1]))
            surplus = before
        return fields[::-1]

    def _text_taken(
        self, costs: list[float], index: int, _parts: list[str]
    ) -> tuple[list[float], list[int]]:
        """Costs once a free text has one part or more, and the surplus used before it."""
        reached, step = list(costs), list(range(len(costs)))
        best = 0
        for used in range(1, len(costs)):
            best = used - 1 if costs[used - 1] < costs[best] else best
            if costs[best] + self._texts[index] < costs[used]:
                reached[used], step[used] = costs[best] + self._texts[index], best
        return reached, step

    def _value_taken(
        self, costs: list[float], index: int, parts: list[str]
    ) -> tuple[list[float], list[int]]:
        """The same of another column; only where commas are at home has it more than one part."""
        reached, step = [math.inf] * len(costs), list(range(len(costs)))
        furthest = _MAX_COMMAS if index in self._spread else 0
        empty_cost = _EMPTY_COST if index in self._filled else 0
        for used in range(len(costs)):
            value = ""
            for before in range(used, max(-1, used - furthest - 1), -1):
                part = parts[index + before]
                value = part if before == used else part + self._delimiter + value
                cost = costs[before] + (0 if value else empty_cost)
                if cost < reached[used] and self._fits(index, value):
                    reached[used], step[used] = cost, before
        return reached, step
