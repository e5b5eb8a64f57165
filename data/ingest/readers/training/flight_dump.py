"""A flight-recorder dump of NCCL or PyTorch: its values as what one rank enqueued."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, get_args

from analytics.training.hangs.dump import Entry, GroupConfig, GroupStatus, RankDump, State
from data.errors import SourceError
from data.ingest.reader import RecordError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.training.hangs.dump import Sizes

KEYS: Final = ("entries", "pg_config", "pg_status")
"""Keys of which a dump has one at least."""
STATES: Final[dict[object, State]] = {state: state for state in get_args(State)}
_ENDINGS = re.compile(r"\.(?:gz|xz|zst|json|pkl|pickle|pt|bin|dump|txt|log)\b", re.IGNORECASE)
_RANK = re.compile(r"(?<!local[-_])rank[-_=]?(\d+)", re.IGNORECASE)
_LAST = re.compile(r"(\d+)\D*\Z")
_MOST_DIGITS = 7
_NUMBER = re.compile(r"-?[0-9]{1,19}")
UNNAMED: Final = "no name"
"""Group of entries that could not be read as far as the name of theirs."""
_WHOLE = re.compile(r"\d{1,7}")
_TIMES = ("time_created_ns", "time_discovered_started_ns", "time_discovered_completed_ns")
"""Of these 0 is PyTorch's JSON for a time that has not come."""
_MOST_TEXT = 500
_MOST_RANKS = 1_000_000
_MOST_TENSORS = 65_536
_MOST_DIMENSIONS = 64
_LARGEST = 2**63


@dataclass
class FlightDump:
    """What one file holds."""

    dump: RankDump
    n_read: int
    """Entries of the file."""
    rejected: Counter[str] = field(default_factory=Counter)
    """Why entries could not be read, and how many."""


def rank_of_name(name: str) -> int | None:
    """The rank of a file's name: the number after `rank`, else the last one.

    None where there is none, or one of more than 7 digits, as a day is.

    >>> rank_of_name("dumps/_dump_12"), rank_of_name("rank_3_20260228.json.gz"), rank_of_name("x")
    (12, 3, None)
    """
    stem = _ENDINGS.sub("", PurePath(name).name)
    stated = _RANK.findall(stem) or _LAST.findall(stem)
    return int(stated[-1]) if stated and len(stated[-1]) <= _MOST_DIGITS else None


def flight_dump(value: object, name: str) -> FlightDump:
    """The dump that a pickle or JSON holds.

    The rank is that of the dump, else of the file's name. An entry that lacks its number, or whose
    state is none of a flight recorder's, is left out and counted.

    Raises
    ------
    SourceError
        Where the value is no dump, or nothing tells its rank.
    """
    if not isinstance(value, dict) or not any(key in value for key in KEYS):
        raise SourceError(
            f"{name}: is no flight-recorder dump, which has {', '.join(KEYS)}: give the files that "
            "TORCH_NCCL_DEBUG_INFO_TEMP_FILE names"
        )
    stated = _whole(value.get("rank"))
    rank = rank_of_name(name) if stated is None else stated
    if rank is None or not 0 <= rank <= _MOST_RANKS:
        raise SourceError(
            f"{name}: names no rank: let the file's name end with it, as _dump_12 does"
        )
    entries = value.get("entries")
    read = _Entries(_configs(value.get("pg_config")))
    listed = entries if isinstance(entries, list | tuple) else ()
    for entry in listed:
        read.take(entry)
    statuses = read.statuses(value.get("pg_status"))
    dump = RankDump(
        rank,
        tuple(replace(config, n_unread=read.unread[name]) for name, config in read.configs.items()),
        statuses,
        tuple(read.entries),
        _text(value.get("host_name")),
        _text(value.get("version")),
        _text(value.get("nccl_version")) or _text(value.get("comm_lib_version")),
    )
    return FlightDump(dump, len(listed), read.rejected)


def _configs(stated: object) -> dict[str, GroupConfig]:
    """Groups by their key."""
    found = {}
    for key, config in stated.items() if isinstance(stated, dict) else ():
        name = str(key)[:_MOST_TEXT]
        if isinstance(config, dict):
            desc, ranks = _text(config.get("desc")) or "", config.get("ranks")
        else:
            desc, ranks = "", config
        found[name] = GroupConfig(name, desc, _ranks(ranks))
    return found


def _ranks(stated: object) -> tuple[int, ...] | None:
    """Ranks as a text such as `[0, 4]`, or a list; None where none are stated."""
    if isinstance(stated, str):
        numbers: list[int | None] = [int(text) for text in _WHOLE.findall(stated)]
    elif isinstance(stated, list | tuple):
        numbers = [_whole(number) for number in stated[:_MOST_RANKS]]
    else:
        return None
    ranks = tuple(dict.fromkeys(number for number in numbers if number is not None))
    return ranks or None


class _Entries:
    """Entries of a dump, each with its group."""

    def __init__(self, configs: dict[str, GroupConfig]) -> None:
        self.configs, self.entries = configs, list[Entry]()
        self.rejected: Counter[str] = Counter()
        self.unread: Counter[str] = Counter()
        """Group's key -> entries of it that could not be read."""
        self._of_id: dict[str, str] = {}
        """Number of a group in the rank's process -> its key."""
        self._sizes: dict[int, Sizes | None] = {}
        self._size_of: dict[int, tuple[int, ...] | None] = {}
        self._texts: dict[int, tuple[str, ...] | None] = {}

    def take(self, entry: object) -> None:
        """Reads one entry, or counts why it cannot be read."""
        key = UNNAMED
        try:
            if not isinstance(entry, dict):
                raise RecordError("entry is no object")
            key = self._group(entry)
            self.entries.append(self._entry(entry, key))
        except RecordError as error:
            self.rejected[str(error)] += 1
            self.unread[key] += 1
            if key == UNNAMED:
                self.configs.setdefault(key, GroupConfig(key))

    def _entry(self, entry: Mapping[str, Any], key: str) -> Entry:
        operation = _text(entry.get("profiling_name")) or ""
        p2p = entry.get("is_p2p")
        if not isinstance(p2p, bool):
            p2p = re.search(r"\b(?:send|recv) \d", operation) is not None
        collective = entry.get("collective_seq_id", entry.get("seq_id"))
        seq = _whole(entry.get("p2p_seq_id", collective) if p2p else collective)
        if seq is None:
            raise RecordError("entry has no sequence number")
        state = STATES.get(entry.get("state")) if isinstance(entry.get("state"), str) else None
        if state is None:
            raise RecordError(f"state is none of {', '.join(get_args(State))}")
        return Entry(
            key,
            seq,
            operation,
            state,
            p2p,
            entry.get("retired") is True,
            _whole(entry.get("record_id")),
            self._all_sizes(entry.get("input_sizes")),
            self._all_sizes(entry.get("output_sizes")),
            self._all_texts(entry.get("input_dtypes")),
            self._all_texts(entry.get("output_dtypes")),
            *(_whole(entry.get(key), least=1) for key in _TIMES),
        )

    def _group(self, entry: Mapping[str, Any]) -> str:
        """Key of an entry's group: by its name, else its number or what it is for."""
        stated = entry.get("process_group")
        named = stated if isinstance(stated, list | tuple) else ()
        name = str(named[0])[:_MOST_TEXT] if named and _is_name(named[0]) else None
        desc = _text(named[1]) if len(named) > 1 else None
        number = entry.get("pg_id")
        of_id = str(number)[:_MOST_TEXT] if _is_name(number) else None
        key = self._known(name, desc) or self._known(of_id, desc) or self._only(desc)
        if key is None:
            key = name or of_id
            if key is None:
                raise RecordError("entry names no process group")
            if key in self.configs:  # of another purpose
                key = f"{key} {desc}"
            self.configs[key] = self.configs.get(key) or GroupConfig(key, desc or "")
        if of_id is not None:
            self._of_id.setdefault(of_id, key)
        return key

    def _known(self, key: str | None, desc: str | None) -> str | None:
        """A key of a group, where its purpose is not another one."""
        config = self.configs.get(key) if key is not None else None
        differs = config is not None and desc and config.desc and config.desc != desc
        return None if config is None or differs else config.name

    def _only(self, desc: str | None) -> str | None:
        same = [config.name for config in self.configs.values() if desc and config.desc == desc]
        return same[0] if len(same) == 1 else None

    def statuses(self, stated: object) -> dict[str, GroupStatus]:
        """Group's key -> how far the rank is: by the numbers that entries show, else the same."""
        found = {}
        same = all(number == key for number, key in self._of_id.items())
        for number, status in stated.items() if isinstance(stated, dict) else ():
            key = self._of_id.get(str(number))
            if key is None and same and str(number) in self.configs:
                key = str(number)
            if not isinstance(status, dict):
                continue
            far = GroupStatus(
                _whole(status.get("last_enqueued_collective"), least=-1),
                _whole(status.get("last_started_collective"), least=-1),
                _whole(status.get("last_completed_collective"), least=-1),
            )
            if key is None and far.is_pending:  # of which group is not known, but it waits
                key = f"number {number}"[:_MOST_TEXT]
                self.configs.setdefault(key, GroupConfig(key))
            if key is not None:
                found[key] = far
        return found

    def _all_sizes(self, stated: object) -> Sizes | None:
        """Sizes of tensors; a list that stands in many entries is read once."""
        if not isinstance(stated, list | tuple):
            return None
        if id(stated) not in self._sizes:
            found = [self._size(one) for one in stated[:_MOST_TENSORS]]
            sizes = tuple(one for one in found if one is not None)
            self._sizes[id(stated)] = sizes if len(sizes) == len(found) else None
        return self._sizes[id(stated)]

    def _size(self, stated: object) -> tuple[int, ...] | None:
        """Size of a tensor; None where it is no list of numbers."""
        if not isinstance(stated, list | tuple) or len(stated) > _MOST_DIMENSIONS:
            return None
        if id(stated) not in self._size_of:
            numbers = [_whole(number) for number in stated]
            known = tuple(number for number in numbers if number is not None)
            self._size_of[id(stated)] = known if len(known) == len(numbers) else None
        return self._size_of[id(stated)]

    def _all_texts(self, stated: object) -> tuple[str, ...] | None:
        if not isinstance(stated, list | tuple):
            return None
        if id(stated) not in self._texts:
            texts = stated[:_MOST_TENSORS]
            known = all(isinstance(text, str) for text in texts)
            self._texts[id(stated)] = tuple(text[:_MOST_TEXT] for text in texts) if known else None
        return self._texts[id(stated)]


def _whole(value: object, least: int = 0) -> int | None:
    """A whole number of 63 bits from `least` on, or its text; None of anything else."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < _LARGEST:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if least <= value < _LARGEST else None


def _is_name(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _text(value: object) -> str | None:
    return value[:_MOST_TEXT] if isinstance(value, str) and value else None
